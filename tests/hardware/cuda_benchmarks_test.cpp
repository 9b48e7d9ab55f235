// Does memwall-bench know every CUDA benchmark that docs/validation.md promises, and does it say what is missing
// where there is no GPU?
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "tests/support/command.h"
#include "tests/support/scratch_folder.h"
#include "validate/replay/cuda_backend.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class CudaBenchmarks : public ::testing::Test {
 protected:
  CommandOutcome bench(const std::string& arguments) const {
    return run_command("'" MEMWALL_BENCH_PROGRAM "' " + arguments, folder_.path());
  }
  // Names of the first column where the second names the place, from the table of the contract.
  static std::set<std::string> promised(const std::string& place) {
    std::istringstream text(content_of(std::filesystem::path(MEMWALL_SOURCE) / "docs" / "validation.md"));
    static const std::regex row(R"(^\| (`[^|]*`) \| ([^|]*) \|.*)"), name("`([a-z0-9_]+)`");
    std::set<std::string> names;
    std::smatch match;
    for (std::string line; std::getline(text, line);) {
      if (!std::regex_match(line, match, row) || match[2].str().find(place) == std::string::npos) continue;
      const std::string first = match[1];
      for (std::sregex_iterator i(first.begin(), first.end(), name), end; i != end; ++i) names.insert((*i)[1]);
    }
    return names;
  }
  // Name -> the words of all lines of --list that begin with it.
  std::map<std::string, std::set<std::string>> listed() const {
    const CommandOutcome list = bench("--list");
    EXPECT_EQ(list.code, 0) << list.err;
    std::istringstream text(list.out);
    std::map<std::string, std::set<std::string>> lines;
    for (std::string line; std::getline(text, line);) {
      static const std::regex word("[A-Za-z0-9_]+");
      std::sregex_iterator i(line.begin(), line.end(), word), end;
      if (i == end) continue;
      std::set<std::string>& words = lines[i->str()];
      for (++i; i != end; ++i) words.insert(i->str());
    }
    return lines;
  }

  ScratchFolder folder_;
};

TEST_F(CudaBenchmarks, TheContractIsFound) {
  const std::set<std::string> names = promised("cuda");
  EXPECT_GE(names.size(), 40u);
  for (const char* known : {"copy_host_hbm_pinned", "gemm_fp8", "nccl_all_reduce", "managed_oversubscribed"})
    EXPECT_TRUE(names.contains(known)) << known;
  EXPECT_FALSE(names.contains("memcpy_host_host"));
}

TEST_F(CudaBenchmarks, EveryPromisedOneIsListed) {
  if (!cuda_is_built_in()) GTEST_SKIP() << "built without nvcc";
  const auto lines = listed();
  for (const std::string& name : promised("cuda")) {
    ASSERT_TRUE(lines.contains(name)) << name;
    EXPECT_TRUE(lines.at(name).contains("cuda")) << name;
  }
}

TEST_F(CudaBenchmarks, NoOneIsListedThatTheContractDoesNotName) {
  const std::set<std::string> names = promised("");
  for (const auto& [name, words] : listed())
    if (words.contains("cuda")) {
      EXPECT_TRUE(names.contains(name)) << name;
    }
}

TEST_F(CudaBenchmarks, WithoutADeviceTheBackEndSaysWhatIsMissing) {
  const std::string reason = cuda_unavailable_reason();
  if (reason.empty()) GTEST_SKIP() << "a CUDA device is present";
  const auto results = folder_ / "results";
  const CommandOutcome ended = bench(fmt::format("--backend cuda -o {}", results.string()));
  EXPECT_EQ(ended.code, 2) << ended.out;
  EXPECT_NE(ended.err.find(reason), std::string::npos) << ended.err;
  EXPECT_FALSE(std::filesystem::exists(results));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
