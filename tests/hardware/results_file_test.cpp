// Results of microbenchmarks on disk: what is written is read, and what is damaged is refused with its line.
#include "validate/measurement/results_file.h"

#include <simdjson.h>

#include <limits>

#include "sim/error.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr const char* kHead =
    "# memwall results 1\n# date: 2025-01-01T00:00:00Z\n"
    "benchmark,parameters,unit,median,low,high,samples,bytes,flops,status,note\n";

MeasurementSet awkward_set() {
  MeasurementSet set;
  set.environment = {{"date", "2025-01-01T00:00:00Z"}, {"cpu.name", "A, \"B\": C"}, {"empty", ""}};
  Measurement copy;
  copy.benchmark = "copy_host_hbm_pinned";
  copy.parameters = {{"bytes", "1048576"}, {"method", "io_uring, \"O_DIRECT\""}};
  copy.low = 0.1 + 0.2;
  copy.median = 1.0 / 3;
  copy.high = std::numeric_limits<double>::max();
  copy.samples = 4294967295u;
  copy.bytes = 1048576;
  copy.flops = std::numeric_limits<double>::denorm_min();
  set.measurements.push_back(copy);
  Measurement absent;
  absent.benchmark = "gemm_fp8";
  absent.unit = "count";
  absent.status = MeasurementStatus::not_applicable;
  absent.note = "line one,\r\n\"line two\"\nline \xc3\xa9 end";  // what could command a terminal is not kept
  set.measurements.push_back(absent);
  return set;
}

void expect_equal(const MeasurementSet& a, const MeasurementSet& b) {
  EXPECT_EQ(a.environment, b.environment);
  ASSERT_EQ(a.measurements.size(), b.measurements.size());
  for (std::size_t i = 0; i < a.measurements.size(); ++i) {
    const Measurement &x = a.measurements[i], &y = b.measurements[i];
    EXPECT_EQ(x.benchmark, y.benchmark);
    EXPECT_EQ(x.parameters, y.parameters);
    EXPECT_EQ(x.unit, y.unit);
    EXPECT_EQ(x.median, y.median);
    EXPECT_EQ(x.low, y.low);
    EXPECT_EQ(x.high, y.high);
    EXPECT_EQ(x.samples, y.samples);
    EXPECT_EQ(x.bytes, y.bytes);
    EXPECT_EQ(x.flops, y.flops);
    EXPECT_EQ(x.status, y.status);
    EXPECT_EQ(x.note, y.note);
  }
}

// The message with which `text` is refused; "" if it is not.
std::string refusal(const std::string& text) {
  try {
    parse_results(text, "r.csv");
    return "";
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(ResultsFile, ReadsBackEveryBitThatItWrote) {
  const MeasurementSet set = awkward_set();
  const std::string text = results_csv(set);
  const MeasurementSet read = parse_results(text, "r.csv");
  expect_equal(read, set);
  EXPECT_EQ(results_csv(read), text);
}

TEST(ResultsFile, LooksAsTheHeaderSays) {
  MeasurementSet set;
  set.environment = {{"backend", "host"}};
  Measurement m;
  m.benchmark = "storage_read";
  m.parameters = {{"threads", "2"}, {"bytes", "65536"}};
  m.low = m.median = 0.00025;
  m.high = 0.5;
  m.samples = 7;
  m.bytes = 65536;
  m.note = "say \"hm\", twice";
  set.measurements = {m};
  EXPECT_EQ(results_csv(set),
            "# memwall results 1\n# backend: host\n"
            "benchmark,parameters,unit,median,low,high,samples,bytes,flops,status,note\n"
            "storage_read,bytes=65536;threads=2,s,0.00025,0.00025,0.5,7,65536,0,measured,\"say \"\"hm\"\", twice\"\n");
}

TEST(ResultsFile, AnEnvironmentEntryStaysOnItsLine) {
  MeasurementSet set;
  set.environment = {{"gpu.name", "two\nlines\r"}};
  EXPECT_EQ(value_of(parse_results(results_csv(set), "r").environment, "gpu.name"), "two lines ");
}

TEST(ResultsFile, WindowsLineEndsAreRead) {
  std::string text = std::string(kHead) + "copy_hbm_hbm,,s,1,1,1,1,0,0,measured,\n";
  for (std::size_t at = 0; (at = text.find('\n', at)) != std::string::npos; at += 2) text.insert(at, "\r");
  const MeasurementSet set = parse_results(text, "r");
  EXPECT_EQ(value_of(set.environment, "date"), "2025-01-01T00:00:00Z");
  ASSERT_EQ(set.measurements.size(), 1u);
  EXPECT_EQ(set.measurements[0].note, "");
}

TEST(ResultsFile, JsonIsReadByAParserAndSaysTheSame) {
  simdjson::dom::parser parser;
  const std::string text = results_json(awkward_set());
  const simdjson::dom::element root = parser.parse(text);
  EXPECT_EQ(std::uint64_t(root["memwall_results"]), 1u);
  EXPECT_EQ(std::string_view(root["environment"]["cpu.name"]), "A, \"B\": C");
  const simdjson::dom::element first = root["measurements"].at(0), second = root["measurements"].at(1);
  EXPECT_EQ(double(first["median"]), 1.0 / 3);
  EXPECT_EQ(std::string_view(first["parameters"]["method"]), "io_uring, \"O_DIRECT\"");
  EXPECT_EQ(std::string_view(second["note"]), "line one,\r\n\"line two\"\nline \xc3\xa9 end");
  EXPECT_EQ(std::string_view(second["status"]), "not_applicable");
  EXPECT_FALSE(parser.parse(results_json({})).error());
}

TEST(ResultsFile, RefusesWithTheLineWhatWasFoundAndWhatWasExpected) {
  const std::string head = kHead, row = "copy_hbm_hbm,bytes=1,s,2,1,3,4,0,0,measured,\n";
  ASSERT_EQ(refusal(head + row), "");
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = head + row + row;
    return refusal(text.replace(text.rfind(from), from.size(), to));
  };
  EXPECT_EQ(with(",2,1,3,", ",0.5,1,3,"), "r.csv:5: found low 1, median 0.5, high 3, expected low <= median <= high.");
  EXPECT_EQ(with("measured", "guessed"),
            "r.csv:5: found status \"guessed\", expected measured, not_applicable or failed.");
  EXPECT_EQ(with(",3,", ",inf,"), "r.csv:5: found high \"inf\", expected a finite number that is not negative.");
  EXPECT_EQ(with(",1,3,", ",nan,3,"), "r.csv:5: found low \"nan\", expected a finite number that is not negative.");
  EXPECT_EQ(with(",1,3,", ",-1,3,"), "r.csv:5: found low \"-1\", expected a finite number that is not negative.");
  EXPECT_EQ(with(",1,3,", ",1e999,3,"), "r.csv:5: found low \"1e999\", expected a finite number that is not negative.");
  EXPECT_EQ(with(",4,", ",4294967296,"),
            "r.csv:5: found samples \"4294967296\", expected a finite number that is not negative.");
  EXPECT_EQ(with(",s,", ",ms,"), "r.csv:5: found unit \"ms\", expected s, B, count or share.");
  EXPECT_EQ(with("bytes=1", "bytes=1;"), "r.csv:5: found parameters \"bytes=1;\", expected key=value;key=value.");
  EXPECT_EQ(with("bytes=1", "n=1;m=2"),
            "r.csv:5: found parameters \"n=1;m=2\", expected each key once, in ascending order.");
  EXPECT_EQ(with("copy_hbm_hbm", "Copy"),
            "r.csv:5: found benchmark \"Copy\", expected a name of small letters, digits and _.");
  EXPECT_EQ(with(",measured,\n", ",measured,a\"b\"\n"),
            "r.csv:5: found a quotation mark or a carriage return amid a field, expected the whole field in quotation "
            "marks, and those inside doubled.");
  EXPECT_EQ(with(",measured,\n", ",measured,\"a\n"),
            "r.csv:5: found a quotation mark that is never closed, expected one more.");
  EXPECT_EQ(with(",measured,\n", ",measured,"),
            "r.csv:5: found a last line that is cut off, expected it to end with a new line.");
  EXPECT_NE(with(",0,0,", ",0,").find("r.csv:5: found 10 fields, expected 11: benchmark,"), std::string::npos);
  EXPECT_NE(with(",measured,\n", ",measured,,\n").find("r.csv:5: found 12 fields, expected 11"), std::string::npos);
}

TEST(ResultsFile, CountsTheLinesInsideAQuotedNote) {
  EXPECT_NE(refusal(std::string(kHead) + "gemm_fp8,,s,0,0,0,0,0,0,failed,\"one\ntwo\nthree\"\nx,y\n").find("r.csv:7: "),
            std::string::npos);
}

TEST(ResultsFile, RefusesOtherKindsOfFilesAndNewerVersions) {
  EXPECT_NE(refusal("").find("r.csv:1: "), std::string::npos);
  EXPECT_NE(refusal("benchmark,parameters\n").find("expected \"# memwall results 1\""), std::string::npos);
  EXPECT_NE(refusal("# memwall results 2\n").find("a newer memwall wrote this"), std::string::npos);
  EXPECT_NE(refusal("# memwall results x\n").find("found version \"x\""), std::string::npos);
  EXPECT_NE(refusal("# memwall results 1\n# date 2025\n").find("r.csv:2: found \"# date 2025\""), std::string::npos);
  EXPECT_NE(
      refusal("# memwall results 1\n# a: b\nbenchmark\n").find("r.csv:3: found \"benchmark\", expected the header"),
      std::string::npos);
  EXPECT_NE(refusal("# memwall results 1\n").find("r.csv:2: found \"\", expected the header"), std::string::npos);
}

TEST(ResultsFile, WritesBothFilesIntoANewFolderAndLeavesNothingElse) {
  const ScratchFolder scratch;
  write_results(awkward_set(), scratch / "a/b");
  write_results(awkward_set(), scratch / "a/b");  // replaces
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(scratch / "a/b")) files += entry.is_regular_file();
  EXPECT_EQ(files, 2u);
  EXPECT_EQ(content_of(scratch / "a/b/results.json"), results_json(awkward_set()));
  expect_equal(read_results(scratch / "a/b"), awkward_set());
  expect_equal(read_results(scratch / "a/b/results.csv"), awkward_set());
}

TEST(ResultsFile, SaysWhereItCannotWriteOrRead) {
  const ScratchFolder scratch;
  write_content(scratch / "file", "x");
  EXPECT_THROW(write_results({}, scratch / "file"), UsageError);
  EXPECT_THROW(write_results({}, scratch / "file/below"), UsageError);
  EXPECT_EQ(content_of(scratch / "file"), "x");
  EXPECT_THROW(read_results(scratch / "absent"), InputError);
  EXPECT_THROW(read_results(scratch.path()), InputError);
  try {
    read_results(scratch / "file");
    FAIL() << "no results in it";
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("file:1: found a last line that is cut off"), std::string::npos);
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
