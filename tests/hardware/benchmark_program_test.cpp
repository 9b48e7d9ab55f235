// memwall-bench from outside: what it lists, measures, writes and refuses.
#include <set>
#include <sstream>

#include "tests/support/command.h"
#include "validate/measurement/results_file.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class BenchmarkProgram : public testing::Test {
 protected:
  CommandOutcome bench(const std::string& arguments) {
    return run_command("'" MEMWALL_BENCH_PROGRAM "' " + arguments, folder_.path());
  }
  // Nothing is left where it ran.
  void expect_refused(const std::string& arguments, const std::string& sentence) {
    const CommandOutcome outcome = bench(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_NE(outcome.err.find(sentence), std::string::npos) << arguments << ": " << outcome.err;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_TRUE(std::filesystem::is_empty(folder_.path())) << arguments;
  }
  const ScratchFolder folder_;
};

TEST_F(BenchmarkProgram, ListsNamePlaceAndPurposeOfEachBenchmarkOnce) {
  const CommandOutcome outcome = bench("--list --backend none");
  EXPECT_EQ(outcome.code, 0);
  std::set<std::string> names;
  std::istringstream lines(outcome.out);
  std::string name, place, sentence;
  while (lines >> name >> place && std::getline(lines, sentence)) {
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_EQ(place, "computer") << name;
    EXPECT_GT(sentence.size(), 20u) << name;
  }
  // At least these; a new one needs no change here.
  for (const char* known :
       {"adam_host", "adam_host_numa", "adam_host_processes", "file_read_direct", "file_write_direct",
        "host_alloc_pinned", "memcpy_host_host", "memcpy_host_host_processes", "storage_read", "storage_write"})
    EXPECT_TRUE(names.contains(known)) << known;
}

TEST_F(BenchmarkProgram, ListsTheHostBackEndsBenchmarksToo) {
  const CommandOutcome outcome = bench("--list --backend host --filter copy_");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.out.find("copy_host_hbm_pinned "), std::string::npos);
  EXPECT_EQ(outcome.out.find("storage_read"), std::string::npos);
}

TEST_F(BenchmarkProgram, ABackEndsOwnBenchmarkTakesThePlaceOfTheComputers) {
  const CommandOutcome outcome = bench("--list --backend host --filter storage_read");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.out.find("stated rate"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find("storage_read"), outcome.out.rfind("storage_read")) << outcome.out;
}

TEST_F(BenchmarkProgram, MeasuresWhatIsAskedForAndWritesBothFiles) {
  const CommandOutcome outcome =
      bench("--backend none --filter storage --filter=memcpy --per-case 0 --largest 256KiB --scratch . -o results");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.err.find(
                "[1/4] storage_read\n[2/4] storage_write\n[3/4] memcpy_host_host\n[4/4] memcpy_host_host_processes\n"),
            std::string::npos)
      << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("benchmark ")) << outcome.out;
  const MeasurementSet set = read_results(folder_ / "results");
  EXPECT_EQ(set.of("storage_read").size(), 2u);
  EXPECT_EQ(set.of("storage_write").size(), 2u);
  EXPECT_GE(set.of("memcpy_host_host").size(), 1u);
  EXPECT_TRUE(set.of("adam_host").empty());
  EXPECT_EQ(value_of(set.environment, "backend"), "none");
  for (const char* key :
       {"date", "cpu.name", "cpu.count", "cpu.numa_nodes", "memory_bytes", "kernel", "memwall", "compiler"})
    EXPECT_NE(value_of(set.environment, key), "") << key;
  EXPECT_EQ(content_of(folder_ / "results/results.json"), results_json(set));
  // The scratch folder's own folder is gone.
  std::set<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path())) left.insert(entry.path().filename());
  EXPECT_EQ(left, std::set<std::string>{"results"});
}

TEST_F(BenchmarkProgram, WithTheHostBackEndItSaysWhatStandsInForTheGpu) {
  const CommandOutcome outcome =
      bench("--backend host --filter device_malloc --per-case 0 --largest 1MiB --scratch . -o results");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const MeasurementSet set = read_results(folder_ / "results");
  EXPECT_EQ(value_of(set.environment, "backend"), "host");
  bool described = false;
  for (const auto& [key, value] : set.environment) described = described || key.starts_with("host_backend.");
  EXPECT_TRUE(described);
}

TEST_F(BenchmarkProgram, WhereNoTimeIsLeftTheRowsSaySo) {
  const CommandOutcome outcome = bench("--backend none --seconds 0 -o results");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const MeasurementSet set = read_results(folder_ / "results");
  EXPECT_EQ(set.measurements.size(), 10u);
  for (const Measurement& m : set.measurements) {
    EXPECT_EQ(m.status, MeasurementStatus::not_applicable);
    EXPECT_EQ(m.note, "no time was left");
  }
}

TEST_F(BenchmarkProgram, RefusesWhatMakesNoSense) {
  expect_refused("--filtre x", "unknown flag \"--filtre\" (nearest: --filter)");
  expect_refused("--backend none --filter adam_hots",
                 "no benchmark of this back end has such a name (nearest: adam_host)");
  expect_refused("--backend gpu", "--backend \"gpu\": expected one of cuda, host, none");
  expect_refused("--seconds soon", "--seconds \"soon\": expected a number from 0 to");
  expect_refused("--seconds -1", "--seconds \"-1\": expected a number");
  expect_refused("--largest 1XB --backend none", "--largest \"1XB\": expected a size such as");
  expect_refused("--scratch absent --backend none", "there is no such folder");
  expect_refused("somewhere", "found the argument \"somewhere\"");
  expect_refused("-o", "-o: expected a value (DIR)");
  expect_refused("--seconds 1 --seconds 2", "--seconds is given twice");
}

TEST_F(BenchmarkProgram, AFolderThatCannotBeWrittenIsFoundBeforeAnythingIsMeasured) {
  write_content(folder_ / "taken", "x");
  const CommandOutcome outcome = bench("--backend none -o taken --seconds 100");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_NE(outcome.err.find("taken: the folder cannot be made"), std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("[1/"), std::string::npos);
  EXPECT_EQ(content_of(folder_ / "taken"), "x");
}

TEST_F(BenchmarkProgram, HelpNamesEveryFlagAndTheExitCodes) {
  const CommandOutcome outcome = bench("--help");
  EXPECT_EQ(outcome.code, 0);
  for (const char* flag : {"--list", "--filter", "--backend", "--seconds", "--per-case", "--largest", "--scratch", "-o",
                           "--help", "exit codes"})
    EXPECT_NE(outcome.out.find(flag), std::string::npos) << flag;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
