// Figures of runs and of parts of them: does a range hold what it says, and nothing else?
#include "gui/drawing/run_figures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <sstream>

#include "sim/error.h"
#include "sim/policy/registry.h"
#include "tests/support/figure_checks.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/handmade_run.h"
#include "tests/support/test_machine.h"
#include "traces/figure/axis.h"
#include "traces/figure/svg.h"
#include "traces/run/analysis/memory_decisions.h"
#include "traces/run/analysis/peak.h"
#include "traces/run/run_recorder.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

using std::chrono::microseconds;

memwall::Run three_steps() {
  GptShape shape;
  shape.steps = 3;
  shape.flops_per_second = 1e9;
  shape.launch_cost = microseconds(2);
  return simulate_and_record(gpt_step(shape), test_machine(), {});
}

// Kernels a at 10-20 us, b at 30-40, c at 50-60, and a copy of 1 MB/us from 30 to 50, in a run of 100 us.
memwall::Run hand_made() {
  HandmadeRun made;
  made.device(OpKind::kernel, "a", 0, 0, 5, 10, 20);
  made.device(OpKind::kernel, "b", 0, 5, 10, 30, 40);
  made.device(OpKind::kernel, "c", 0, 10, 15, 50, 60);
  made.host(OpKind::host_work, "rest", 15, 100);
  memwall::Run run = made.finish();
  run.link_rates[0] = {{from_microseconds(0), 0}, {from_microseconds(30), 1e12}, {from_microseconds(50), 0}};
  run.result.links[0].bytes = 20'000'000;
  return run;
}

Figure figure_of(const memwall::Run& run, const std::string& view, std::optional<TimeRange> range = {},
                 std::vector<std::string> lanes = {}) {
  return run_figure({&run}, {"run"}, {.view = view, .tier = "hbm", .range = range, .lanes = std::move(lanes)});
}

std::string svg_of(const Figure& figure) {
  std::ostringstream out;
  write_svg(figure, out);
  return out.str();
}

std::string refusal(const std::string& range, const memwall::Run& run) {
  try {
    parse_range(range, run);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

bool has_text(const Figure& figure, const std::string& part) {
  const std::vector<Text> texts = memwall::all_of<Text>(figure);
  return text_with(texts, part) != nullptr;
}

// --- what is sent away and comes back

memwall::Run planned_run(const std::string& policy) {
  const Machine machine = test_machine();
  const Trace trace = gpt_step({.layers = 2, .hidden = 64, .sequence = 64, .batch = 8});
  return simulate_and_record(apply_rewriters(trace, {parse_policy(policy)}, machine, *test_pricer(machine)), machine,
                             {});
}

TEST(RunFigures, MemoryHasRowsOfWhatLeavesAndComesBack) {
  const std::string offload = "offload:what=activations,to=host,min_bytes=0";
  const Figure sent = figure_of(planned_run(offload), "memory");
  EXPECT_TRUE(has_text(sent, "sent"));
  EXPECT_TRUE(has_text(sent, "fetched"));
  EXPECT_FALSE(has_text(sent, "run again"));
  EXPECT_TRUE(has_text(sent, "its use waited for it")) << "10 GB/s are too slow for some";
  EXPECT_NE(svg_of(sent).find("before its use"), std::string::npos);
  const Figure again = figure_of(planned_run("checkpoint:mode=full"), "memory");
  EXPECT_TRUE(has_text(again, "run again"));
  EXPECT_FALSE(has_text(again, "fetched"));
  EXPECT_GT(sent.height, again.height) << "two rows, one row";
  EXPECT_FALSE(has_text(figure_of(three_steps(), "memory"), "run again")) << "without a policy there are none";
}

// Every byte that a plan copies crosses a link, and the picture of links says so.
TEST(RunFigures, MemoryHasALinePerBudget) {
  memwall::Run run = three_steps();
  EXPECT_FALSE(has_text(figure_of(run, "memory"), "budget"));
  run.trace.edit().budgets = {{"capuchin", 1'000'000, 0}};
  EXPECT_TRUE(has_text(figure_of(run, "memory"), "budget of capuchin"));
}

TEST(RunFigures, LinksCarryWhatIsSentAndFetched) {
  const memwall::Run run = planned_run("offload:what=activations,to=host,min_bytes=0");
  const ModuleDecisions all = memory_decisions(run).total();
  ASSERT_GT(all.copied_out, 0);
  for (const auto& [name, bytes] : {std::pair("pcie_d2h", all.copied_out), std::pair("pcie_h2d", all.copied_in)}) {
    const auto link = std::find_if(run.machine.links.begin(), run.machine.links.end(),
                                   [&, its = name](const Link& l) { return l.name == its; });
    ASSERT_NE(link, run.machine.links.end());
    EXPECT_EQ(run.result.links[static_cast<std::size_t>(link - run.machine.links.begin())].bytes, bytes) << name;
    EXPECT_TRUE(has_text(figure_of(run, "links"), name));
  }
}

// --- ranges

TEST(RunFigures, StepsAreCountedAsTheSummaryListsThem) {
  const memwall::Run run = three_steps();
  const std::vector<StepWindow> steps = step_windows(run);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(parse_range("step:2", run), (TimeRange{steps[1].begin, steps[1].end}));
  EXPECT_EQ(parse_range("step:1-3", run), (TimeRange{steps[0].begin, steps[2].end}));
  EXPECT_EQ(parse_range("step:" + steps[2].name, run), (TimeRange{steps[2].begin, steps[2].end}));
  EXPECT_NE(refusal("step:4", run).find("the run has 3 steps (" + steps[0].name), std::string::npos);
  for (const char* wrong : {"step:0", "step:2-1", "step:", "step:x", "step:2-", "step:-1", "step:99999999999999999999"})
    EXPECT_NE(refusal(wrong, run).find("counted from 1"), std::string::npos) << wrong;
}

TEST(RunFigures, InstantsHaveUnitsAndMayBeOpen) {
  const memwall::Run run = hand_made();
  const auto us = [](double value) { return from_microseconds(value); };
  EXPECT_EQ(parse_range("12us:15us", run), (TimeRange{us(12), us(15)}));
  EXPECT_EQ(parse_range("12.5us:0.02ms", run), (TimeRange{us(12.5), us(20)}));
  EXPECT_EQ(parse_range("12us:", run), (TimeRange{us(12), us(100)}));
  EXPECT_EQ(parse_range(":15us", run), (TimeRange{us(0), us(15)}));
  EXPECT_EQ(parse_range("0.00001s:1s", run), (TimeRange{us(10), us(100)}));
  EXPECT_EQ(parse_range("10\xc2\xb5s:20000ns", run), (TimeRange{us(10), us(20)}));
  for (const char* wrong : {"", ":", "12", "12:15", "12us", "12us:x", "-1us:5us", "1e400s:", "nans:", "infs:"})
    EXPECT_NE(refusal(wrong, run).find("expected step:2"), std::string::npos) << wrong;
  EXPECT_NE(refusal("15us:12us", run).find("not after"), std::string::npos);
  EXPECT_NE(refusal("1s:2s", run).find("ends at 100"), std::string::npos);
}

TEST(RunFigures, OpsReachFromTheirFirstCallToTheirLastWork) {
  const memwall::Run run = hand_made();
  EXPECT_EQ(parse_range("op:1-2", run), (TimeRange{from_microseconds(5), from_microseconds(60)}));
  EXPECT_EQ(parse_range("op:0", run), (TimeRange{from_microseconds(0), from_microseconds(20)}));
  EXPECT_NE(refusal("op:2-4", run).find("ops 0 to 3"), std::string::npos);
  EXPECT_NE(refusal("op:2-1", run).find("ops 0 to 3"), std::string::npos);
}

TEST(RunFigures, ARangeAroundThePeakHoldsItAndStaysInTheRun) {
  const memwall::Run run = three_steps();
  const Time peak = find_peak(run, 0).time;
  const TimeRange range = parse_range("peak:10us", run);
  EXPECT_TRUE(range.contains(peak));
  EXPECT_EQ(range.length(), microseconds(10));
  EXPECT_EQ(parse_range("peak:100s", run), (TimeRange{Time{}, run.result.end}));
  EXPECT_NE(refusal("peak:0us", run).find("expected how much time"), std::string::npos);
  EXPECT_THROW(parse_range("peak:1us", run, "hbn"), UsageError);
}

// --- figures

TEST(RunFigures, EveryViewIsLegible) {
  const memwall::Run run = three_steps(), other = hand_made();
  const TimeRange step = parse_range("step:2", run);
  for (const char* view : {"timeline", "memory", "links", "tiers"}) expect_legible(figure_of(run, view));
  for (const char* view : {"timeline", "memory", "links"}) expect_legible(figure_of(run, view, step));
  expect_legible(run_figure({&run, &other}, {"a", "b"}, {.view = "compare", .tier = "", .range = {}, .lanes = {}}));
}

TEST(RunFigures, AComparisonIsLabelledByPolicies) {
  memwall::Run base = three_steps(), full = three_steps();
  full.policies = {"checkpoint:mode=full"};
  const Figure figure =
      run_figure({&base, &full}, {"first.h5", "second.h5"}, {.view = "compare", .tier = "", .range = {}, .lanes = {}});
  EXPECT_TRUE(has_text(figure, "base: no policy"));
  EXPECT_TRUE(has_text(figure, "checkpoint:mode=full"));
  EXPECT_FALSE(has_text(figure, "first"));
  EXPECT_FALSE(has_text(figure, "second"));
}

TEST(RunFigures, ATimelineOfARangeHasItsSpansOnly) {
  const memwall::Run run = hand_made();
  const Figure part = figure_of(run, "timeline", TimeRange{from_microseconds(25), from_microseconds(45)});
  EXPECT_TRUE(has_title(part, "b\ncompute: 10.0 "));
  EXPECT_FALSE(has_title(part, "a\n"));
  EXPECT_FALSE(has_title(part, "c\n"));
  EXPECT_TRUE(has_text(part, "Timeline, 25 \xc2\xb5s to 45 \xc2\xb5s"));
  EXPECT_TRUE(has_text(part, "40"));  // the axis has the run's times
  EXPECT_FALSE(has_text(figure_of(run, "timeline"), " to "));
}

// The legend names what is in the picture.
TEST(RunFigures, TheLegendOfARangeHasItsKindsOnly) {
  const memwall::Run run = hand_made();
  const auto names = [&](std::optional<TimeRange> range) {
    std::vector<std::string> found;
    for (const Text& text : memwall::all_of<Text>(figure_of(run, "timeline", range)))
      if (text.text == "compute" || text.text == "host") found.push_back(text.text);
    return found;
  };
  EXPECT_EQ(names({}), (std::vector<std::string>{"host", "compute"}));
  EXPECT_EQ(names(TimeRange{from_microseconds(70), from_microseconds(90)}), (std::vector<std::string>{"host"}));
}

// Rectangles of a cut span end where the drawing area does.
TEST(RunFigures, SpansAreCutAtTheRange) {
  const memwall::Run run = hand_made();
  const Figure part = figure_of(run, "timeline", TimeRange{from_microseconds(35), from_microseconds(37)});
  ASSERT_TRUE(has_title(part, "b\ncompute"));
  for (const Rectangle& r : memwall::all_of<Rectangle>(part)) {
    EXPECT_GE(r.x, 0);
    EXPECT_LE(r.x + r.width, part.width);
  }
}

TEST(RunFigures, LanesAreChosenByTitleInTheirOrder) {
  const memwall::Run run = hand_made();
  const std::string stream = "stream compute", thread = "main";
  std::vector<std::string> titles;
  for (const Text& text : memwall::all_of<Text>(figure_of(run, "timeline")))
    if (text.anchor == Anchor::end) titles.push_back(text.text);
  ASSERT_GE(titles.size(), 2u);
  const Figure two = figure_of(run, "timeline", {}, {titles[1], titles[0]});
  std::vector<std::string> drawn;
  for (const Text& text : memwall::all_of<Text>(two))
    if (text.anchor == Anchor::end) drawn.push_back(text.text);
  EXPECT_EQ(drawn, (std::vector<std::string>{titles[1], titles[0]}));
  try {
    figure_of(run, "timeline", {}, {titles[0] + "x"});
    ADD_FAILURE() << "a lane that does not exist";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("nearest: \"" + titles[0] + "\""), std::string::npos) << error.what();
  }
}

// The highest value within the range, from the points of memory themselves.
TEST(RunFigures, MemoryOfARangeMarksItsOwnHighest) {
  const memwall::Run run = three_steps();
  const TimeRange range = parse_range("step:1", run);
  const TimeRange part{range.begin, range.begin + range.length() / 4};
  Bytes highest = 0;
  for (const KindPoint& p : memory_by_kind(run, 0)) {
    if (p.time > part.end) break;
    Bytes sum = 0;
    for (const Bytes bytes : p.by_kind) sum += bytes;
    if (p.time <= part.begin) highest = 0;
    highest = std::max(highest, sum);
  }
  ASSERT_GT(highest, 0);
  const Figure figure = figure_of(run, "memory", part);
  EXPECT_TRUE(has_text(figure, "peak " + format_bytes(highest) + " in this range"));
  EXPECT_FALSE(has_text(figure_of(run, "memory"), "in this range"));
}

// What the picture stacks was requested, the table's peak is in blocks: the picture names both, and the tiers' is the
// table's.
TEST(RunFigures, APeakIsTheTablesOrNamedAnother) {
  const memwall::Run run = three_steps();
  const TierResult& hbm = run.result.tiers[0];
  Bytes requested = 0;
  for (const Bytes bytes : hbm.peak_by_kind) requested += bytes;
  ASSERT_GT(hbm.peak_allocated, requested) << "the allocator rounds";
  EXPECT_TRUE(has_text(figure_of(run, "memory"), " requested (" + format_bytes(hbm.peak_allocated) + " in blocks"));
  EXPECT_TRUE(has_text(figure_of(run, "tiers"), "peak " + format_bytes(hbm.peak_allocated) + " of"));
}

TEST(RunFigures, LinksOfARangeSayWhatItCarried) {
  const memwall::Run run = hand_made();
  EXPECT_TRUE(has_text(figure_of(run, "links"), "20.0 MB"));
  const Figure half = figure_of(run, "links", TimeRange{from_microseconds(40), from_microseconds(60)});
  EXPECT_TRUE(has_text(half, "10.0 MB"));
  EXPECT_TRUE(has_text(figure_of(run, "links", TimeRange{from_microseconds(60), from_microseconds(80)}), "0 B"));
}

TEST(RunFigures, TheWholeRunAsARangeDrawsTheSameShapes) {
  const memwall::Run run = three_steps();
  const TimeRange all{Time{}, run.result.end};
  for (const char* view : {"timeline", "links"}) {
    const auto shapes = [](const Figure& figure) {
      return memwall::all_of<Rectangle>(figure).size() + memwall::all_of<Polyline>(figure).size();
    };
    EXPECT_EQ(shapes(figure_of(run, view, all)), shapes(figure_of(run, view))) << view;
  }
  EXPECT_EQ(svg_of(figure_of(run, "memory", all)), svg_of(figure_of(run, "memory", all)));
}

TEST(RunFigures, WhatMakesNoSenseIsRefused) {
  const memwall::Run run = hand_made();
  const TimeRange range{from_microseconds(1), from_microseconds(2)};
  EXPECT_THROW(figure_of(run, "tiers", range), UsageError);
  EXPECT_THROW(figure_of(run, "compare", range), UsageError);
  EXPECT_THROW(figure_of(run, "timelime"), UsageError);
  EXPECT_THROW(figure_of(run, "memory", {}, {"main"}), UsageError);
  EXPECT_THROW(figure_of(run, "timeline", TimeRange{from_microseconds(200), from_microseconds(300)}), UsageError);
  EXPECT_THROW(figure_of(run, "timeline", TimeRange{from_microseconds(2), from_microseconds(2)}), UsageError);
}

// Two million spans: what is narrower than a point costs no name, and the picture stays small.
TEST(RunFigures, ARunOfMillionsOfSpansMakesASmallFigure) {
  memwall::Run run = hand_made();
  Op op = run.trace->ops[0];
  OpRecord record = run.result.records[0];
  run.trace.edit().ops.clear();
  run.result.records.clear();
  for (int i = 0; i < 1'000'000; ++i) {
    record.host_start = Time(i * 100);
    record.host_end = record.host_start + Duration(50);
    record.start = record.host_start + Duration(20);
    record.end = record.start + Duration(70);
    run.trace.edit().ops.push_back(op);
    run.result.records.push_back(record);
  }
  EXPECT_LT(figure_of(run, "timeline").items.size(), 20'000u);
  EXPECT_LT(figure_of(run, "timeline", TimeRange{Time(1000), Time(3000)}).items.size(), 1'000u);
}

// The kernels come long after the host has freed what they use.
memwall::Run host_far_ahead() {
  GptShape shape;
  shape.steps = 2;
  shape.flops_per_second = 1e6;
  shape.launch_cost = nanoseconds(1);
  return simulate_and_record(gpt_step(shape), test_machine(), {});
}

TEST(RunFigures, MemorySaysItsClock) {
  const memwall::Run run = host_far_ahead();
  RunFigureRequest request{.view = "memory", .tier = "hbm", .range = {}, .lanes = {}};
  const Figure host = run_figure({&run}, {"run"}, request);
  EXPECT_TRUE(has_text(host, "Memory of hbm by the allocator's (host) clock"));
  EXPECT_TRUE(has_text(host, "reserved by the allocator"));
  request.clock = MemoryClock::device;
  const Figure device = run_figure({&run}, {"run"}, request);
  EXPECT_TRUE(has_text(device, "Memory of hbm that holds data, by the device's clock"));
  EXPECT_FALSE(has_text(device, "reserved by the allocator")) << "that changes on the other clock";
  EXPECT_TRUE(has_text(device, format_bytes(device_peaks(run)[0].bytes)));
  EXPECT_TRUE(has_text(figure_of(run, "tiers"), "by the allocator's (host) clock"));
  EXPECT_TRUE(has_text(figure_of(run, "compare"), "by the allocator's (host) clock"));
}

TEST(RunFigures, ARangeAroundThePeakIsOfTheClockThatIsDrawn) {
  const memwall::Run run = host_far_ahead();
  const Time on_host = run.result.tiers[0].peak_time, on_device = device_peaks(run)[0].time;
  ASSERT_GT(on_device, on_host + microseconds(10));
  const TimeRange host = parse_range("peak:1us", run, "hbm"),
                  device = parse_range("peak:1us", run, "hbm", MemoryClock::device);
  EXPECT_TRUE(host.begin <= on_host && on_host <= host.end);
  EXPECT_TRUE(device.begin <= on_device && on_device <= device.end);
}

TEST(RunFigures, AClockThatTheViewOrTheRunHasNotIsRefused) {
  const memwall::Run run = hand_made();
  RunFigureRequest request{.view = "links", .tier = "hbm", .range = {}, .lanes = {}, .clock = MemoryClock::device};
  EXPECT_THROW(run_figure({&run}, {"run"}, request), UsageError);
  request.view = "memory";
  try {
    run_figure({&run}, {"run"}, request);
    FAIL() << "this run knows nothing of what its ops read and write";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("its trace does not know what ops read and write"), std::string::npos);
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
