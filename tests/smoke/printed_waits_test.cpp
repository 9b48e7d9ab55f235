// Is a wait that people are shown ever longer than the run? The samples, with policies that make streams wait.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <sstream>

#include "tests/support/command.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

namespace fs = std::filesystem;

std::vector<fs::path> shipped_samples() {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(MEMWALL_SOURCE) / "traces/samples"))
    if (entry.path().string().ends_with(".mwc.gz") || entry.path().extension() == ".mwt") paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Of the waits in `memwall run --format csv`: per lane all together, and the whole run.
struct PrintedWaits {
  double total = 0;
  std::map<std::string, double> by_lane;
};

PrintedWaits read_waits(const std::string& csv) {
  PrintedWaits waits;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t value = line.rfind(',') + 1;
    if (line.starts_with("whole_run,total,value,")) waits.total = std::stod(line.substr(value));
    const std::size_t column = line.rfind(",seconds,");
    if (!line.starts_with("waits,") || column == line.npos) continue;
    waits.by_lane[line.substr(6, line.rfind('/', column) - 6)] += std::stod(line.substr(value));
  }
  return waits;
}

TEST(PrintedWaits, AreNoLongerThanTheRun) {
  const std::vector<fs::path> samples = shipped_samples();
  ASSERT_GE(samples.size(), 7u);
  std::size_t lanes = 0;
  const ScratchFolder folder;
  for (const fs::path& sample : samples)
    for (const char* changes : {"", "--policy offload:what=activations,to=host", "--policy zero:stage=3,ranks=8",
                                "--policy offload:what=optimizer,to=host --set gpu.hbm.capacity=16GB --pager lru"}) {
      const CommandOutcome run = run_command(
          "'" MEMWALL_PROGRAM "' run '" + sample.string() + "' --machine h100-sxm-80gb --format csv " + changes,
          folder.path());
      if (run.code != 0 && run.code != 3) continue;  // a sample that the policy does not take
      const PrintedWaits waits = read_waits(run.out);
      EXPECT_GT(waits.total, 0) << sample << " " << changes;
      for (const auto& [lane, seconds] : waits.by_lane) {
        ++lanes;
        EXPECT_LE(seconds, waits.total * 1.000001) << sample << " " << changes << ": " << lane;
      }
    }
  EXPECT_GE(lanes, 4 * samples.size());
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
