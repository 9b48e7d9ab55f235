// Do the programs that people already open read what memwall exports, and say what memwall says? Holistic Trace
// Analysis and PyTorch's memory_viz, where MEMWALL_PYTHON (or python3) has them; memwall itself everywhere.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include <cstdlib>
#include <deque>
#include <map>

#include "sim/trace/ranks.h"
#include "tests/support/program.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shared_data.h"
#include "traces/run/analysis/interval_union.h"
#include "traces/run/file/run_file.h"
#include "traces/run/lane_names.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

namespace dom = simdjson::dom;

const std::string kSample = MEMWALL_SOURCE "/traces/samples/gpt_124m.mwt";

std::string python() {
  const char* const named = std::getenv("MEMWALL_PYTHON");
  return fmt::format("'{}'", named == nullptr ? "python3" : named);
}
bool has_module(const std::string& name) {
  const std::string find = "import importlib.util as u, sys; sys.exit(u.find_spec(sys.argv[1]) is None)";
  return run_command(fmt::format("{} -c '{}' {}", python(), find, name), ".").code == 0;
}

class ExportedProfiles : public ::testing::Test {
 protected:
  void run(const std::string& arguments, const std::string& output) {
    const CommandOutcome o = run_memwall(folder_, "run " + arguments + " -o " + output + " --no-provenance");
    ASSERT_TRUE(o.code == 0 || o.code == 3) << o.err;
  }
  void write(const std::string& arguments) {
    const CommandOutcome o = run_memwall(folder_, "export " + arguments);
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(o.err, "") << "the allocator's replay differs";
  }
  dom::element printed(const CommandOutcome& o) {
    EXPECT_EQ(o.code, 0) << o.err;
    const std::size_t line = o.out.rfind("\n{");
    texts_.push_back(simdjson::padded_string(o.out.substr(line == std::string::npos ? 0 : line + 1)));
    parsers_.emplace_back();
    return parsers_.back().parse(texts_.back());
  }
  dom::element json(const std::string& arguments) { return printed(run_memwall(folder_, arguments)); }

  ScratchFolder folder_;
  std::deque<simdjson::padded_string> texts_;
  std::deque<dom::parser> parsers_;
};

double number(dom::element element, const char* key) { return double(element[key]); }

TEST_F(ExportedProfiles, AProfileReplaysAsTheRunDid) {
  const std::pair<const char*, double> questions[] = {
      {"--machine a100-sxm-80gb", 1e-6},
      {"--machine h100-sxm-80gb --policy checkpoint", 1e-6},
      {"--machine a100-sxm-80gb --policy offload:what=activations", 2e-3},
      {"--machine a100-sxm-80gb --policy zero:stage=2,ranks=8", 2e-3}};
  for (const auto& [question, tolerance] : questions) {
    run("'" + kSample + "' " + question, "run.h5");
    write("run.h5 --to kineto -o profile.json");
    const dom::element was = json(fmt::format("run '{}' {} --format json", kSample, question));
    const dom::element is = json("run profile.json --format json");
    EXPECT_NEAR(number(is, "step_time_s"), number(was, "step_time_s"), tolerance * number(was, "step_time_s"))
        << question;
    EXPECT_NEAR(double(is["tiers"]["hbm"]["peak_allocated_bytes"]), double(was["tiers"]["hbm"]["peak_allocated_bytes"]),
                0.005 * double(was["tiers"]["hbm"]["peak_allocated_bytes"]))
        << question;
  }
}

// What HTA calls computation, communication and memory, in nanoseconds as the profile has them.
struct Figures {
  double span = 0, busy = 0, compute = 0, communication = 0, both = 0;
  std::map<std::string, double> kernels;
};

std::int64_t length(const std::vector<Interval>& intervals) {
  std::int64_t sum = 0;
  for (const Interval& i : intervals) sum += (i.end - i.begin).count();
  return sum;
}

Figures figures_of(const memwall::Run& run, std::uint16_t rank) {
  IntervalUnion all, compute, communication;
  Time first = kNever, last{};
  Figures f;
  for (OpId id = 0; id < run.trace->ops.size(); ++id) {
    const Op& op = run.trace->ops[id];
    const OpRecord& record = run.result.records[id];
    if (!has_work(op, record) || op.kind == OpKind::storage_io || rank_of(run.trace, op) != rank) continue;
    const Time begin = nanoseconds(record.start.count() / 1000), end = nanoseconds(record.end.count() / 1000);
    first = std::min(first, begin);
    last = std::max(last, end);
    all.add(op.stream, begin, end);
    const bool moves = op.kind == OpKind::copy || op.kind == OpKind::memset;
    if (op.kind == OpKind::kernel) compute.add(op.stream, begin, end);
    if (op.kind == OpKind::collective) communication.add(op.stream, begin, end);
    f.kernels[moves                           ? "MEMORY"
              : op.kind == OpKind::collective ? "COMMUNICATION"
                                              : "COMPUTATION"] += static_cast<double>((end - begin).count()) / 1e6;
  }
  const std::vector<Interval> computes = compute.take(), communicates = communication.take();
  for (const std::vector<Interval>* list : {&computes, &communicates})
    for (const Interval& i : *list) compute.add(0, i.begin, i.end);
  f.span = static_cast<double>((last - first).count()) / 1e6;
  f.busy = static_cast<double>(length(all.take())) / 1e6;
  f.compute = static_cast<double>(length(computes)) / 1e6;
  f.communication = static_cast<double>(length(communicates)) / 1e6;
  f.both = f.compute + f.communication - static_cast<double>(length(compute.take())) / 1e6;
  return f;
}

void expect_same(const dom::element& told, const Figures& own) {
  constexpr double kSlack = 0.01;  // us, of sums of thousands of numbers
  EXPECT_NEAR(number(told, "kernel_us"), own.span, kSlack);
  EXPECT_NEAR(number(told, "idle_us"), own.span - own.busy, kSlack);
  EXPECT_NEAR(number(told, "compute_us"), own.compute, kSlack);
  EXPECT_NEAR(number(told, "non_compute_us"), own.busy - own.compute, kSlack);
  for (const auto& [kind, time] : own.kernels)
    EXPECT_NEAR(number(told["kernels_us"], kind.c_str()), time, kSlack) << kind;
  EXPECT_NEAR(number(told, "overlap_percent"), 100 * own.both / own.communication, 0.006) << "rounded to 0.01";
}

constexpr const char* kNoHta = "no python with HolisticTraceAnalysis here; MEMWALL_PYTHON may name one";
const std::string kHta = python() + " '" MEMWALL_SOURCE "/tests/smoke/hta_figures.py' profiles 2>hta.log";

TEST_F(ExportedProfiles, HolisticTraceAnalysisFindsTheSameTimes) {
  if (!has_module("hta")) GTEST_SKIP() << kNoHta;
  std::filesystem::create_directory(folder_ / "profiles");
  run("'" + kSample +
          "' --machine a100-sxm-80gb --steps 2 --policy zero:stage=2,ranks=8 --policy "
          "offload:what=activations,fraction=0.3",
      "run.h5");
  write("run.h5 --to kineto -o profiles");
  const dom::element told = printed(run_command(kHta, folder_.path()));
  const Figures own = figures_of(read_run(folder_ / "run.h5"), 0);
  ASSERT_GT(own.both, 0) << "nothing would be put to the test";
  ASSERT_GT(own.kernels.at("MEMORY"), 0);
  expect_same(told["ranks"]["0"], own);
}

TEST_F(ExportedProfiles, RanksReplayAsTheyDidAndAreAnalyzedOneByOne) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "MEMWALL_SHARED has no captures of several ranks";
  std::filesystem::create_directory(folder_ / "profiles");
  run("'" + (*data / "traces/dlrm_8xv100").string() + "'", "run.h5");
  write("run.h5 --to kineto -o profiles");
  const memwall::Run was = read_run(folder_ / "run.h5");
  run("profiles", "again.h5");
  const memwall::Run is = read_run(folder_ / "again.h5");
  ASSERT_EQ(is.result.steps.size(), was.result.steps.size());
  ASSERT_EQ(was.result.steps.size(), 4u);
  for (std::size_t i = 0; i < was.result.steps.size(); ++i)
    EXPECT_NEAR(to_seconds(is.result.steps[i].step_time), to_seconds(was.result.steps[i].step_time), 1e-8) << i;
  const CommandOutcome several = run_memwall(folder_, "export run.h5 --to kineto");
  EXPECT_EQ(several.code, 2);
  EXPECT_NE(several.err.find("holds 4 ranks, and a profile one"), std::string::npos) << several.err;
  EXPECT_EQ(run_memwall(folder_, "export run.h5 --to kineto --rank 2").out,
            content_of(folder_ / "profiles/rank2.json"));
  if (!has_module("hta")) return;
  const dom::element told = printed(run_command(kHta, folder_.path()));
  for (std::uint16_t rank = 0; rank < 4; ++rank)
    expect_same(told["ranks"][std::to_string(rank)], figures_of(was, rank));
}

TEST_F(ExportedProfiles, PytorchsMemoryVizOpensEverySnapshot) {
  if (!has_module("torch")) GTEST_SKIP() << "no python with torch here; MEMWALL_PYTHON may name one";
  run("'" + kSample + "' --machine a100-sxm-80gb", "run.h5");
  run("'" + kSample + "' --machine a100-sxm-80gb --policy checkpoint --alloc-conf expandable_segments:True",
      "other.h5");
  write("run.h5 --to memory_viz -o run.pickle");
  write("other.h5 --to memory_viz -o other.pickle");
  const dom::element viz = printed(run_command(
      python() + " '" MEMWALL_SOURCE "/tests/smoke/memory_viz_views.py' run.pickle other.pickle", folder_.path()));
  const memwall::Run whole = read_run(folder_ / "run.h5");
  const MemoryPoint& end = whole.memory[0].back();
  EXPECT_EQ(std::int64_t(viz["reserved"]), end.reserved);
  EXPECT_EQ(std::int64_t(viz["allocated"]), end.allocated);
  EXPECT_EQ(std::uint64_t(viz["mallocs"]), whole.result.tiers[0].allocator.device_mallocs);
  for (const char* view : {"trace_plot", "segment_plot", "cached_plot"}) EXPECT_TRUE(bool(viz[view])) << view;
  EXPECT_GT(std::int64_t(viz["memory"]), 100);
  EXPECT_GT(std::int64_t(viz["difference"]), 100);
  EXPECT_EQ(std::int64_t(viz["only_after"]), 1);
}

TEST_F(ExportedProfiles, MemwallReadsItsOwnSnapshotToTheByte) {
  run("'" + kSample + "' --machine a100-sxm-80gb --policy checkpoint", "run.h5");
  write("run.h5 --to memory_viz -o run.pickle");
  const dom::element memory = json("memory run.pickle --format json");
  const memwall::Run whole = read_run(folder_ / "run.h5");
  const std::string text = simdjson::minify(memory);
  EXPECT_NE(text.find(std::to_string(whole.result.tiers[0].peak_allocated)), std::string::npos) << text.substr(0, 2000);
  EXPECT_NE(text.find(std::to_string(whole.result.tiers[0].peak_reserved)), std::string::npos);
}

TEST_F(ExportedProfiles, RefusalsNameWhatIsExpected) {
  run("'" + kSample + "' --machine a100-sxm-80gb --allocator ideal", "run.h5");
  CommandOutcome o = run_memwall(folder_, "export run.h5 --to memory_viz -o x.pickle");
  EXPECT_EQ(o.code, 2);
  EXPECT_NE(o.err.find("allocator is ideal"), std::string::npos) << o.err;
  EXPECT_FALSE(std::filesystem::exists(folder_ / "x.pickle"));
  EXPECT_NE(run_memwall(folder_, "export run.h5 --to kineto --rank 3").err.find("holds 1 rank"), std::string::npos);
  EXPECT_NE(run_memwall(folder_, "export run.h5 --to csv --rank 0").err.find("--to kineto"), std::string::npos);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
