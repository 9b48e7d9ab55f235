// Timelines drawn from blocks of a run: are they those of the whole run, and do they read no more than they need?
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <sstream>

#include "gui/drawing/run_figures.h"
#include "sim/error.h"
#include "tests/support/handmade_run.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/varied_runs.h"
#include "traces/figure/svg.h"
#include "traces/run/export/export_lanes.h"
#include "traces/run/file/run_file.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

// A source that counts what it is asked for.
class CountingSource final : public RunSource {
 public:
  explicit CountingSource(std::shared_ptr<const RunSource> source) : source_(std::move(source)) {}
  mutable std::vector<std::uint32_t> blocks;
  mutable int wholes = 0;

  const RunOutline& outline() const override { return source_->outline(); }
  std::vector<LaneCell> cells(std::uint32_t lane, std::uint8_t level, std::uint64_t first,
                              std::uint64_t last) const override {
    return source_->cells(lane, level, first, last);
  }
  SpanBlock spans(std::uint32_t block) const override {
    blocks.push_back(block);
    return source_->spans(block);
  }
  std::vector<MoveRecord> moves(std::uint64_t first, std::uint64_t count) const override {
    return source_->moves(first, count);
  }
  std::vector<MemoryHigh> memory(std::uint32_t tier, Time begin, Time end, std::size_t most) const override {
    return source_->memory(tier, begin, end, most);
  }
  std::vector<RateHigh> link_rates(std::uint32_t link, Time begin, Time end, std::size_t most) const override {
    return source_->link_rates(link, begin, end, most);
  }
  StorageColumns storages(const LoadProgress& progress) const override { return source_->storages(progress); }
  std::vector<Residency> residency(const LoadProgress& progress) const override { return source_->residency(progress); }
  std::vector<std::uint32_t> at_peak(std::uint32_t tier) const override { return source_->at_peak(tier); }
  OpDetail op(OpId id) const override { return source_->op(id); }
  std::string text(StringId id) const override { return source_->text(id); }
  std::vector<std::string> texts(const LoadProgress& progress) const override { return source_->texts(progress); }
  std::vector<OpId> ops_with(const std::vector<bool>& wanted, std::size_t most,
                             const LoadProgress& progress) const override {
    return source_->ops_with(wanted, most, progress);
  }
  std::vector<OpId> followers(OpId id, std::size_t most) const override { return source_->followers(id, most); }
  std::vector<StorageUse> uses_of(StorageId storage, std::size_t most) const override {
    return source_->uses_of(storage, most);
  }
  std::shared_ptr<const memwall::Run> whole(const LoadProgress& progress) const override {
    ++wholes;
    return source_->whole(progress);
  }
  std::size_t resident_bytes() const override { return source_->resident_bytes(); }

 private:
  std::shared_ptr<const RunSource> source_;
};

std::string svg_of(const Figure& figure) {
  std::ostringstream out;
  write_svg(figure, out);
  return out.str();
}

// The picture, or the sentence that refuses it.
template <class Draw>
std::string outcome_of(Draw draw) {
  try {
    return svg_of(draw());
  } catch (const UsageError& error) {
    return error.what();
  }
}

std::string outcome(const memwall::Run& run, const RunFigureRequest& request) {
  return outcome_of([&] { return run_figure({&run}, {"run"}, request); });
}
std::string outcome(const RunSource& run, const RunFigureRequest& request) {
  return outcome_of([&] { return run_timeline(run, request); });
}

// All of the run, parts of it that lie anywhere, an instant's neighbourhood, and what is beyond its end.
std::vector<std::optional<TimeRange>> ranges_of(const memwall::Run& run, std::mt19937& random) {
  const auto end = run.result.end.count();
  std::vector<std::optional<TimeRange>> ranges{std::nullopt, TimeRange{Time{}, Time(end + 1)},
                                               TimeRange{Time(end), Time(end + 5)}};
  std::uniform_int_distribution<std::int64_t> any(0, end);
  for (int i = 0; i < 3; ++i) ranges.push_back(range_between(Time(any(random)), Time(any(random))));
  for (int i = 0; i < 2; ++i) {
    const Time at(any(random));
    ranges.push_back(TimeRange{at, at + Duration(1 + end / 1000)});
  }
  return ranges;
}

std::vector<std::string> titles_of(const memwall::Run& run) {
  std::vector<std::string> titles;
  const ExportLanes lanes(run);
  for (const ExportLane& lane : lanes.lanes()) titles.push_back(lane.name);
  return titles;
}

void expect_same_pictures(const memwall::Run& run, const RunSource& source, const std::string& name) {
  const auto expect_same = [&](const std::optional<TimeRange>& range, const std::vector<std::string>& lanes) {
    const RunFigureRequest request{.view = "timeline", .tier = "hbm", .range = range, .lanes = lanes};
    EXPECT_EQ(outcome(source, request), outcome(run, request))
        << name << (lanes.empty() ? "" : ", " + lanes.front()) << (range ? ", a range" : "");
  };
  std::mt19937 random(7);
  std::vector<std::string> titles = titles_of(run);
  for (const std::string& title : titles) expect_same({}, {title});
  for (const char* title : {"no such lane", "copy engine to host", "copy engine to host (2)"}) expect_same({}, {title});
  std::reverse(titles.begin(), titles.end());
  for (const auto& range : ranges_of(run, random)) {
    expect_same(range, {});
    expect_same(range, titles);
  }
}

TEST(RunTimeline, BlocksGiveThePictureOfTheWholeRun) {
  const ScratchFolder folder;
  for (NamedRun& named : varied_runs()) {
    const auto run = std::make_shared<const memwall::Run>(std::move(named.run));
    expect_same_pictures(*run, *source_of(run), named.name);
    write_run(*run, folder / "run.h5");
    expect_same_pictures(*run, *open_run(folder / "run.h5"), named.name + " in a file");
  }
}

// Three blocks of short kernels in two streams, whose order in time is not that of the ops, of few lengths: what is
// merged is often a tie, and the order in which lengths are added up decides it.
memwall::Run shuffled_run() {
  std::mt19937 random(3);
  HandmadeRun made;
  made.device(OpKind::kernel, "first", 0, 0, 5, 10, 20);
  made.device(OpKind::kernel, "second", 1, 5, 10, 30, 40);
  memwall::Run run = made.finish();
  const std::vector<Op> ops = run.trace->ops;
  OpRecord record = run.result.records[0];
  run.trace.edit().ops.clear();
  run.result.records.clear();
  constexpr std::int64_t kOps = 2 * kSpanBlock + kSpanBlock / 2;
  for (std::int64_t i = 0; i < kOps; ++i) {
    Op op = ops[random() % 2];
    op.phase = static_cast<Phase>(1 + random() % 3);
    record.host_start = Time(i * 100);
    record.host_end = record.host_start + Duration(50);
    record.start = Time((i + static_cast<std::int64_t>(random() % 20'000)) * 100);
    record.end = record.start + Duration(i % 5000 == 0 ? 400'000 : 33 * (1 + random() % 2));
    run.trace.edit().ops.push_back(op);
    run.result.records.push_back(record);
  }
  run.result.end = Time((kOps + 30'000) * 100);
  return run;
}

TEST(RunTimeline, SpansThatStandInAnotherOrderThanTheirOpsAreMergedInTime) {
  const auto run = std::make_shared<const memwall::Run>(shuffled_run());
  expect_same_pictures(*run, *source_of(run), "shuffled");
}

TEST(RunTimeline, OnlyBlocksWithinTheRangeAreRead) {
  const auto run = std::make_shared<const memwall::Run>(gpt_run(1500, 1));
  const CountingSource source(source_of(run));
  ASSERT_GE(source.outline().ops, 3 * kSpanBlock);
  const std::vector<LaneBlock>& blocks = source.outline().blocks[0];  // of the thread
  const TimeRange range{blocks[1].begin + Duration(1), blocks[1].begin + Duration(2)};
  const std::string thread = source.outline().lanes[0].name;
  run_timeline(source, {.view = "timeline", .tier = "hbm", .range = range, .lanes = {thread}});
  EXPECT_EQ(source.blocks, std::vector<std::uint32_t>{1});
  source.blocks.clear();
  run_timeline(source, {.view = "timeline", .tier = "hbm", .range = {}, .lanes = {thread}});
  EXPECT_EQ(source.blocks.size(), blocks.size());
  EXPECT_EQ(source.wholes, 0);
}

// An index has no more than 255 lanes that engines could stand behind.
TEST(RunTimeline, EnginesThatTheIndexLacksAreDrawnToo) {
  memwall::Run run = varied_runs().back().run;  // random, with copies over every engine
  Trace& trace = run.trace.edit();
  while (trace.streams.size() < 300) trace.streams.push_back(trace.streams.front());
  const auto shared = std::make_shared<const memwall::Run>(std::move(run));
  const CountingSource source(source_of(shared));
  const RunFigureRequest request;
  const std::string picture = outcome(source, request);
  EXPECT_EQ(picture, outcome(*shared, request));
  EXPECT_EQ(source.wholes, 1);
  EXPECT_NE(picture.find("copy engine"), std::string::npos);
}

TEST(RunTimeline, ProgressIsToldAndMayStopIt) {
  const auto run = std::make_shared<const memwall::Run>(gpt_run(2));
  std::vector<double> told;
  run_timeline(*source_of(run), {}, [&](double share) {
    told.push_back(share);
    return true;
  });
  ASSERT_FALSE(told.empty());
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_LE(told.back(), 1);
  EXPECT_THROW(run_timeline(*source_of(run), {}, [](double) { return false; }), LoadCancelled);
}

// --- ranges

std::string range_text(const TimeRange& range) {
  return std::to_string(range.begin.count()) + " to " + std::to_string(range.end.count());
}
template <class AnyRun>
std::string range_outcome(const std::string& text, const AnyRun& run, const std::string& tier) {
  try {
    return range_text(parse_range(text, run, tier));
  } catch (const UsageError& error) {
    return error.what();
  }
}

TEST(RunTimeline, RangesAreThoseOfTheWholeRun) {
  for (NamedRun& named : varied_runs()) {
    const auto run = std::make_shared<const memwall::Run>(std::move(named.run));
    const auto source = source_of(run);
    std::vector<std::string> texts{"step:1",   "step:2-3", "step:9",  "step:x",        "peak:2us", "peak:100s",
                                   "peak:0us", "1ns:",     ":100us",  "5us:3us",       "x",        "op:0-99999",
                                   "op:5-4",   "1s:2s",    "1us:2us", "op:20000-25000"};
    for (OpId id = 0; id < run->trace->ops.size() && id < 400; ++id)
      texts.push_back("op:" + std::to_string(id) + (id % 3 == 0 ? "-" + std::to_string(id + id % 50) : ""));
    for (const std::string& text : texts)
      for (const char* tier : {"hbm", "host", "hbn"})
        ASSERT_EQ(range_outcome(text, *source, tier), range_outcome(text, *run, tier)) << named.name << ", " << text;
  }
}

// Members of a graph have no calls that a lane draws, and as part of a range they count all the same.
TEST(RunTimeline, ManyOpsWithoutCallsAreLookedUpTogether) {
  memwall::Run run = gpt_run(300, 1);
  for (Op& op : run.trace.edit().ops) op.graph_member = true;
  const auto shared = std::make_shared<const memwall::Run>(std::move(run));
  const CountingSource source(source_of(shared));
  for (const auto& [text, wholes] : {std::pair{"op:3-40", 0}, {"op:0-11000", 1}}) {
    EXPECT_EQ(range_text(parse_range(text, source)), range_text(parse_range(text, *shared)));
    EXPECT_EQ(source.wholes, wholes) << text;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
