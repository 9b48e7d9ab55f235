// Executions as text: read as written, refused otherwise.
#include "validate/replay/execution.h"

#include <gtest/gtest.h>

#include "sim/error.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Execution some_execution() {
  Execution e;
  e.schedule = "gpt, two steps";
  e.schedule_hash = schedule_hash("foobar");
  e.environment = {{"backend", "host"}, {"cpu.name", "Some CPU: 100% \"fast\""}, {"odd: key", ""}};
  e.totals = {microseconds(30), microseconds(20), microseconds(25)};
  e.chosen = 2;
  e.times.resize(3);
  e.times[0] = {nanoseconds(0), nanoseconds(10), kNever, kNever};
  e.times[1] = {nanoseconds(12), nanoseconds(20), nanoseconds(400), nanoseconds(24'000)};
  e.times[2] = {nanoseconds(21), nanoseconds(25'000), kNever, kNever};
  e.alone = {Duration{}, nanoseconds(23'000), Duration{}};
  e.peaks = {{"hbm", 1000, 2'097'152}, {"host", 64, 128}};
  e.integrity = {17, 12'345, 0, ""};
  return e;
}

std::string parse_refusal(const std::string& text) {
  try {
    parse_execution(text, "x.csv");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(Execution, TextIsReadAgain) {
  const Execution e = some_execution();
  const std::string text = execution_text(e);
  const Execution read = parse_execution(text, "x.csv");
  EXPECT_EQ(execution_text(read), text);
  EXPECT_EQ(read.schedule, e.schedule);
  EXPECT_EQ(read.schedule_hash, e.schedule_hash);
  EXPECT_EQ(read.environment, e.environment);
  EXPECT_EQ(read.totals, e.totals);
  EXPECT_EQ(read.chosen, 2u);
  ASSERT_EQ(read.times.size(), 3u);
  EXPECT_EQ(read.times[1].end, nanoseconds(24'000));
  EXPECT_EQ(read.times[2].start, kNever);
  EXPECT_EQ(read.times[2].host_end, nanoseconds(25'000));
  EXPECT_EQ(read.alone, e.alone);
  ASSERT_EQ(read.peaks.size(), 2u);
  EXPECT_EQ(read.peaks[1].place, "host");
  EXPECT_EQ(read.peaks[0].reserved, 2'097'152);
  EXPECT_EQ(read.integrity.checks, 17u);
  EXPECT_EQ(read.integrity.bytes, 12'345u);
}

// Written out, so that a change of the format is a decision.
TEST(Execution, TextIsWhatTheDocumentationSays) {
  EXPECT_EQ(execution_text(some_execution()),
            "memwall execution 1\n"
            "# schedule: gpt, two steps\n"
            "# schedule_hash: fnv1a64:85944171f73967e8\n"
            "# environment.backend: host\n"
            "# environment.cpu.name: Some CPU: 100%25 \"fast\"\n"
            "# environment.odd%3a%20key: -\n"
            "# total: 30000\n# total: 20000\n# total: 25000\n"
            "# chosen: 2\n"
            "# integrity: 17 12345\n"
            "# peak: hbm 1000 2097152\n# peak: host 64 128\n"
            "# ops: 3\n"
            "op,host_start,host_end,start,end,alone\n"
            "0,0,10,,,0\n"
            "1,12,20,400,24000,23000\n"
            "2,21,25000,,,0\n");
}

TEST(Execution, ReaderSaysLineFoundAndExpected) {
  const std::string good = execution_text(some_execution());
  ASSERT_EQ(parse_refusal(good), "");
  const auto said = [&](const std::string& from, const std::string& to, const std::string& part) {
    std::string text = good;
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    const std::string sentence = parse_refusal(text.replace(at, from.size(), to));
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
    EXPECT_EQ(sentence.find("x.csv:"), 0u) << sentence;
  };
  said("execution 1", "execution 2", "x.csv:1: found \"memwall execution 2\", expected \"memwall execution 1\"");
  said("# chosen: 2", "# chosen: 3", "the number of one of 3 passes");
  said("# chosen", "# choosen", "a key that executions have");
  said("# ops: 3", "# ops: 4", "4, as \"# ops\" says");
  said("\n1,12,20,", "\n1,12,11,", "an end that is not before the start");
  said(",400,24000,", ",400,399,", "an end that is not before the start");
  said(",400,24000,", ",400,,", "both a start and an end");
  said("\n1,12", "\n2,12", "from 1 to 1");
  said("2,21,25000,,,0\n", "2,21,25000,,,0", "cut off");
  said("2,21,25000,,,0", "2,21,25000,,0", "6 fields between commas");
  said("2,21,25000,,,0", "2,21,25000,,,-1", "a whole number from 0");
  said("2,21,25000,,,0", "2,21,25000,,,9223372036854775807", "a whole number from 0");
  said("# total: 30000\n# total", "# total: 030000\n# total", "expected \"# total: 30000\"");
  said("op,host_start,host_end,start,end,alone\n", "", "\"# key: value\"");
}

TEST(Execution, FilesAreWrittenWhole) {
  const ScratchFolder folder;
  write_execution(some_execution(), folder / "a.csv");
  EXPECT_EQ(execution_text(read_execution(folder / "a.csv")), execution_text(some_execution()));
  EXPECT_THROW(read_execution(folder / "b.csv"), InputError);
  EXPECT_THROW(write_execution(some_execution(), folder / "no/a.csv"), UsageError);
}

// Vectors of the authors: http://www.isthe.com/chongo/tech/comp/fnv/.
TEST(Execution, HashIsFnv1a) {
  EXPECT_EQ(schedule_hash(""), "fnv1a64:cbf29ce484222325");
  EXPECT_EQ(schedule_hash("a"), "fnv1a64:af63dc4c8601ec8c");
  EXPECT_EQ(schedule_hash("foobar"), "fnv1a64:85944171f73967e8");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
