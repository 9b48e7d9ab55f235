// What every verb prints in every format can be read by whoever asked for that format: JSON parses, rows of CSV have as
// many cells as the header (RFC 4180), rows of Markdown tables too, and no table is empty.
#include <gtest/gtest.h>
#include <simdjson.h>

#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/pickle_writer.h"
#include "tests/support/program.h"
#include "tests/support/published_tables.h"
#include "tests/support/shared_data.h"
#include "tests/support/small_capture.h"
#include "tests/support/synthetic_snapshot.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

namespace fs = std::filesystem;

struct Request {
  const char* verb;  // with its sub-verb
  const char* arguments;
  int code = 0;
  bool needs_captures = false;  // of MEMWALL_SHARED, beside the folder as "data"
};

const std::vector<Request> kRequests = {
    {"import", "--formats"},
    {"import", "odd_names.json --explain"},
    {"inspect", "step.mwt"},
    {"inspect", "step.mwc.gz --full"},
    {"inspect", "odd_names.json --full"},
    {"inspect", "offload.plan"},
    {"inspect", "checkpoint.plan --full"},
    {"run", "step.mwt"},
    {"run", "step.mwt --no-provenance --full --steps 2"},
    {"run", "step.mwt --full --policy checkpoint:mode=full --policy offload:what=optimizer,to=host"},
    {"run", "step.mwt --policy zero:stage=2,ranks=8"},
    {"run", "step.mwt --full --pager lru --set gpu.hbm.capacity=6GB"},
    {"run", "step.mwc.gz --full --machine b200-sxm-180gb --allocator stitching"},
    {"run", "odd_names.json --full"},
    {"run", "llama3-8b:batch=2,sequence=4096 --machine h100-sxm-80gb", 3},
    {"run", "step.mwc.gz --machine a100-sxm-40gb --find-largest-batch"},
    {"run", "step.mwc.gz --machine a100-sxm-40gb --set gpu.hbm.capacity=2GB --find-largest-batch", 3},
    {"run", "data/traces/dlrm_8xv100 --full", 0, true},
    {"compare", "base.h5 run.h5"},
    {"compare", "base.h5 base.h5 --full"},
    {"compare", "checkpoint.plan offload.plan"},
    {"compare", "checkpoint.plan checkpoint.plan --full"},
    {"memory", "small.pickle"},
    {"memory", "small.pickle --full --alloc-conf expandable_segments:True"},
    {"memory", "small.pickle --search --capacity 40GiB"},
    {"memory", "small.pickle --capacity 1MiB", 3},
    {"memory", "data/traces/snapshots/lm_small_ctx100_train_from_empty.pickle --full --search", 0, true},
    {"machines", ""},
    {"machines", "t4"},
    {"machines show", "h100-sxm-80gb --set link.pcie_h2d.bandwidth=50GB/s"},
    {"machines compare", "a100-sxm-80gb h100-sxm-80gb mi300x"},
    {"machines check", "--tables data/published", 0, true},
    {"machines check", "a100-sxm-80gb --points --tables data/published", 0, true},
    {"policies", ""},
    {"policies", "offload"},
    {"policies show", "checkpoint"},
    {"calibrate", "results"},
    {"schedule", "step.mwt --scale bytes=1/32,flops=0.001 -o step.schedule"},
    {"schedule", "step.mwt --policy offload:what=activations,to=host -o offload.schedule"},
    {"plan", "step.mwt --budget 8GiB --no-smallest"},
    {"plan", "step.mwt --budget 1GiB --tiers host+nvme --full --no-smallest", 3},
    {"plan", "gpt2-124m:layers=2,width=64,heads=2,sequence=64,batch=4 --machine t4 --budget 170MiB"},
    {"plan", "step.mwt --budget 11GiB --no-smallest --observed small.pickle"},
    {"plan", "gpt2-124m:layers=2,width=64,heads=2,sequence=64,batch=4 --machine t4 --budget 100MiB --ranks 8"},
    {"plan", "gpt2-124m:layers=2,width=64,heads=2,sequence=64 --machine t4 --budget 200MiB --objective batch --full"},
    {"plan", "gpt2-124m:layers=2,width=64,heads=2,sequence=64 --machine t4 --budget 2MiB --objective batch", 3},
    {"compare-policies", "step.mwt --budget 70% --policy plan --policy checkpoint:mode=full"},
    {"validate", ""},
    {"validate", "results"},
    {"validate", "--published published", 0, true},
    {"validate", "--transfer data", 0, true},
    {"forecast", "log.csv"},
    {"forecast", "run.h5 --full --capacity 80GiB"},
    {"forecast", "log.csv --capacity 1GiB", 3},
    {"forecast", "--share base.h5 run.h5 --capacity 80GiB"},
    {"forecast", "--share base.h5 run.h5 --machine h100-sxm-80gb --full"},
    {"generate", "--list"},
    {"generate", "gpt2-124m --batch 1 --seq 64"},
    {"generate", "resnet50 -o resnet50.mwt"},
    {"sweep", "step.mwt --over 'policy=none|checkpoint' --objective step_time --no-journal"},
    {"sweep merge", "memwall-sweep.0-of-1.sqlite"},
    {"fit", "step.mwt --over gpu.hbm.capacity=1..40GiB:5 --no-journal"},
    {"explain", "step.mwt --only 'gpu.hbm.*' --only 'host to *' --curve pcie=gen3,gen5 --no-journal"},
    {"explain", "step.mwt --only 'scale.*' --budget 1GiB --no-regret --no-journal", 3},
    {"roofline", "step.mwt"},
    {"roofline", "step.mwc.gz --full --machine h100-sxm-80gb --top 100"},
    {"roofline", "step.mwc.gz --machine t4 --policy checkpoint --fusion fusion:epilogues=gemm"},
};

std::string json_mistake(const std::string& text) {
  simdjson::dom::parser parser;
  simdjson::dom::element value;
  const auto error = parser.parse(text).get(value);
  if (error != simdjson::SUCCESS) return simdjson::error_message(error);
  return value.is_object() || value.is_array() ? "" : "neither an object nor an array";
}

// RFC 4180: cells with commas, quotes or ends of lines stand in quotes, which are doubled within.
std::string csv_mistake(const std::string& text) {
  std::vector<std::size_t> cells;  // of each row
  std::size_t at = 0, row = 1;
  const auto mistake = [&](const std::string& what) { return "row " + std::to_string(row) + ": " + what; };
  for (std::size_t width = 0; at < text.size(); ++at) {
    if (text[at] == '"') {
      for (++at; at < text.size() && (text[at] != '"' || (at + 1 < text.size() && text[at + 1] == '"')); ++at)
        at += text[at] == '"';
      if (at++ >= text.size()) return mistake("a quote has no end");
    }
    while (at < text.size() && text[at] != ',' && text[at] != '\n') {
      if (text[at] == '"' || text[at] == '\r') return mistake("a quote, or a carriage return, within a cell");
      if (at > 0 && text[at - 1] == '"') return mistake("text behind a quote");
      ++at;
    }
    if (at == text.size()) return mistake("the last line has no end");
    ++width;
    if (text[at] == ',') continue;
    cells.push_back(width);
    if (width != cells.front())
      return mistake(std::to_string(width) + " cells, the header has " + std::to_string(cells[0]));
    width = 0;
    ++row;
  }
  return cells.size() < 2 ? "no row" : "";
}

std::size_t markdown_cells(const std::string& line) {
  std::size_t bars = 0;
  for (std::size_t i = 0; i < line.size(); ++i) bars += line[i] == '|' && (i == 0 || line[i - 1] != '\\');
  return bars - 1;
}

std::string markdown_mistake(const std::string& text) {
  std::istringstream lines(text);
  std::size_t width = 0, below = 0;  // of the header; how many lines below it
  bool something = false;
  for (std::string line; std::getline(lines, line);) {
    something |= !line.empty();
    if (!line.starts_with("|")) {
      if (width != 0 && below == 0) return "a header without a rule above \"" + line + "\"";
      width = 0;
      continue;
    }
    below = width == 0 ? 0 : below + 1;
    if (width == 0) width = markdown_cells(line);
    if (markdown_cells(line) != width || line.back() != '|')
      return std::to_string(width) + " cells in the header, not in \"" + line + "\"";
    if (below == 1 && line.find_first_not_of("|-:") != line.npos) return "no rule below the header: \"" + line + "\"";
  }
  if (width != 0 && below == 0) return "a header without a rule at the end";
  return something ? "" : "nothing";
}

std::string table_mistake(const std::string& text) {
  return text.find_first_not_of(" \n") == text.npos ? "nothing" : text.back() == '\n' ? "" : "the last line has no end";
}

struct OutputFormat {
  const char* name;
  std::string (*mistake)(const std::string& text);
};
const std::vector<OutputFormat> kFormats = {
    {"json", json_mistake}, {"csv", csv_mistake}, {"md", markdown_mistake}, {"table", table_mistake}};

// Names with everything that separates or ends cells: a bar, a comma, a quote, an end of line.
std::string capture_of_odd_names() {
  std::string text = small_capture();
  for (const std::string name : {"vectorized_elementwise_kernel", "reduce_kernel"}) {
    const std::size_t at = text.find("\"" + name + "\"");
    EXPECT_NE(at, text.npos);
    text.replace(at + 1, name.size(), R"(a|b, \"c\"\nd\\|e\té)");
  }
  return text;
}

std::string log_with_a_period() {
  std::string text = "seconds,bytes\n";
  for (int i = 0; i < 96; ++i)
    text += std::to_string(i) + "," + std::to_string(2'000'000'000LL + 100'000'000LL * (i % 8)) + "\n";
  return text;
}

class FormattedOutputs : public ::testing::Test {
 protected:
  void SetUp() override {
    const fs::path source = MEMWALL_SOURCE;
    fs::copy(source / "traces/samples/gpt_124m.mwt", folder_ / "step.mwt");
    fs::copy(source / "traces/samples/captures/gpt2_124m.mwc.gz", folder_ / "step.mwc.gz");
    fs::copy(source / "validate/data/two-core-epyc", folder_ / "results", fs::copy_options::recursive);
    write_content(folder_ / "odd_names.json", capture_of_odd_names());
    write_content(folder_ / "small.pickle", pickled(small_snapshot()));
    write_content(folder_ / "log.csv", log_with_a_period());
    if (const auto data = shared_data()) fs::create_directory_symlink(*data, folder_ / "data");
    copy_few_published_tables(folder_ / "published");
    EXPECT_EQ(run_memwall(folder_, "run step.mwt -o base.h5").code, 0);
    EXPECT_EQ(run_memwall(folder_, "sweep step.mwt --over repeat=1,2 --shard 0/1").code, 0);
    EXPECT_EQ(
        run_memwall(folder_, "run step.mwt --policy checkpoint:mode=full -o run.h5 --plan-out checkpoint.plan").code,
        0);
    EXPECT_EQ(
        run_memwall(folder_, "run step.mwt --policy offload:what=activations,to=host --plan-out offload.plan").code, 0);
  }
  void expect_readable(const std::string& line, int code, const OutputFormat& format) {
    const CommandOutcome o = run_memwall(folder_, line);
    EXPECT_EQ(o.code, code) << line << "\n" << o.err;
    const std::string mistake = format.mistake(o.out);
    EXPECT_EQ(mistake, "") << line << "\n" << o.out.substr(0, 2000);
  }
  const ScratchFolder folder_;
};

class JsonOutputs : public FormattedOutputs, public ::testing::WithParamInterface<std::string> {};

// The first request of a verb is asked in every format, each other one in JSON and in one of the others in turn: plans
// take seconds.
TEST_P(JsonOutputs, CanBeReadInEveryFormat) {
  std::size_t asked = 0;
  for (const Request& r : kRequests) {
    if (r.verb != GetParam() || (r.needs_captures && !shared_data())) continue;
    for (std::size_t f = 0; f < kFormats.size(); ++f)
      if (asked == 0 || f == 0 || f == 1 + asked % (kFormats.size() - 1))
        expect_readable(std::string(r.verb) + " " + r.arguments + " --format " + kFormats[f].name, r.code, kFormats[f]);
    ++asked;
  }
}

std::vector<std::string> requested_verbs() {
  std::set<std::string> verbs;
  for (const Request& r : kRequests) verbs.insert(r.verb);
  return {verbs.begin(), verbs.end()};
}

std::string name_of_verb(const ::testing::TestParamInfo<std::string>& verb) {
  std::string name = verb.param;
  for (char& c : name) c = c == ' ' || c == '-' ? '_' : c;
  return name;
}

INSTANTIATE_TEST_SUITE_P(Verb, JsonOutputs, ::testing::ValuesIn(requested_verbs()), name_of_verb);

// The same fields mean the same in every verb: the answer is a list of sentences, what is not known is null.
TEST_F(FormattedOutputs, VerbsAgreeOnTheirAnswer) {
  simdjson::dom::parser parser;
  const auto answer = [&](const std::string& line) {
    simdjson::dom::object object;
    EXPECT_EQ(parser.parse(run_memwall(folder_, line + " --format json").out).get(object), simdjson::SUCCESS) << line;
    return object;
  };
  for (const std::string line :
       {"run step.mwt", "run step.mwt --find-largest-batch", "compare base.h5 run.h5",
        "compare checkpoint.plan offload.plan", "memory small.pickle", "inspect step.mwt", "inspect offload.plan",
        "roofline step.mwt", "forecast log.csv", "forecast --share base.h5 run.h5 --capacity 80GiB"}) {
    simdjson::dom::array sentences;
    ASSERT_EQ(answer(line)["verdict"].get(sentences), simdjson::SUCCESS) << line;
    EXPECT_GT(sentences.size(), 0u) << line;
    for (const simdjson::dom::element sentence : sentences) EXPECT_TRUE(sentence.is_string()) << line;
  }
  const auto bound = [&](const simdjson::dom::object& object) {
    std::string_view text;
    EXPECT_EQ(object["bound_by"].get(text), simdjson::SUCCESS);
    return std::string(text);
  };
  const std::string base = bound(answer("run step.mwt"));
  EXPECT_EQ(bound(answer("compare base.h5 run.h5")["base"].get_object()), base);
  EXPECT_NE(bound(answer("roofline step.mwt")), "");
  const std::string roofline = run_memwall(folder_, "roofline step.mwt --format json --top 100").out;
  EXPECT_NE(roofline.find("\"achieved\": null"), roofline.npos);
  for (const char* field : {"achieved", "attainable", "at_hbm", "at_l2", "ridge_hbm"})
    EXPECT_EQ(roofline.find("\"" + std::string(field) + "\": 0,"), roofline.npos) << field;
}

TEST_F(FormattedOutputs, WithoutTheOption) {
  expect_readable("export run.h5 --to json", 0, kFormats[0]);
  expect_readable("export run.h5 --to chrome", 0, kFormats[0]);
  expect_readable("export run.h5 --to csv", 0, kFormats[1]);
  expect_readable("roofline step.mwt --json", 0, kFormats[0]);
  expect_readable("roofline step.mwt --csv", 0, kFormats[1]);
  expect_readable("memory small.pickle --timeline events.csv", 0, kFormats[3]);
  EXPECT_EQ(csv_mistake(content_of(folder_ / "events.csv")), "");
}

// Every verb, and every verb of a verb, whose help names --format.
void find_verbs_with_format(const ScratchFolder& folder, const std::string& verb, std::set<std::string>& found) {
  const std::string help = run_memwall(folder, verb + " --help").out;
  if (help.find("  --format ") != help.npos) found.insert(verb);
  const std::size_t begin = help.find("\nSubcommands:\n");
  if (begin == help.npos) return;
  std::istringstream lines(help.substr(begin + 14));
  for (std::string line; std::getline(lines, line) && line.starts_with("  ");) {
    const std::string name = line.substr(2, line.find(' ', 2) - 2);
    if (!name.empty() && name != "help") find_verbs_with_format(folder, verb.empty() ? name : verb + " " + name, found);
  }
}

TEST(JsonOutputsTest, EveryVerbWithAFormatIsAsked) {
  const ScratchFolder folder;
  std::set<std::string> verbs;
  find_verbs_with_format(folder, "", verbs);
  const std::vector<std::string> asked = requested_verbs();
  EXPECT_EQ(verbs, std::set<std::string>(asked.begin(), asked.end())) << "kRequests must have a row for each";
}

// The checks themselves.
TEST(JsonOutputsTest, MistakesAreSeen) {
  for (const char* bad : {"", "{", "{\"a\": nan}", "{} {}", "[1,]", "3"}) EXPECT_NE(json_mistake(bad), "") << bad;
  EXPECT_EQ(json_mistake("{\"a\": [1, null]}\n"), "");
  for (const char* bad :
       {"", "a,b\n", "a,b\n1\n", "a,b\n1,2,3\n", "a,b\n1,\"2\n", "a,b\n1,2\"\n", "a,b\n1,\"2\"3\n", "a,b\n1,2"})
    EXPECT_NE(csv_mistake(bad), "") << bad;
  for (const char* good : {"a,b\n1,2\n", "a,b\n\"1\n,\",\n", "a,b\n\"\",\"2 \"\"x\"\"\"\n"})
    EXPECT_EQ(csv_mistake(good), "") << good;
  for (const char* bad : {"", "| a |\n", "| a |\n|---|\n| 1 | 2 |\n", "| a |\n| 1 |\n", "| a | b |\n|---|\n"})
    EXPECT_NE(markdown_mistake(bad), "") << bad;
  EXPECT_EQ(markdown_mistake("### t\n\n| a | b |\n|---|---:|\n| 1 \\| 2 | 3 |\n\n- note\n"), "");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
