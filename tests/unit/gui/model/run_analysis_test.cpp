// Is what needs the whole run what its parts say, and can it be stopped?
#include "gui/model/run_analysis.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tests/support/gpt_trace.h"
#include "tests/support/handmade_run.h"
#include "tests/support/rank_program.h"
#include "tests/support/test_machine.h"
#include "traces/run/run_recorder.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

std::shared_ptr<const RunAnalysis> analysis_of(Run run) {
  return analyse(*source_of(std::make_shared<const Run>(std::move(run))), {});
}

Run gpt_run(int steps = 2) {
  GptShape shape;
  shape.steps = steps;
  shape.launch_cost = nanoseconds(9);
  shape.allocator_cost = nanoseconds(2);
  return simulate_and_record(gpt_step(shape), test_machine(), {});
}

// Rank 0 computes 100 us, rank 1 for 400, then both reduce.
Run late_rank() {
  RankAuthor a(0), b(1);
  for (auto [author, time] : {std::pair(&a, 100), std::pair(&b, 400)}) {
    author->kernel(microseconds(time));
    author->order(0, 1);
    author->meet(7, microseconds(30));
    author->order(1, 0);
    author->kernel(microseconds(10));
  }
  return simulate_and_record(joined(std::move(a), std::move(b)), test_machine(), {});
}

TEST(RunAnalysis, HoldsPathClassesAndSummaryOfTheRun) {
  const auto analysis = analysis_of(gpt_run());
  Time at{};
  ClassTimes of_path;
  for (const PathSegment& segment : analysis->path) {
    EXPECT_EQ(segment.begin, at);
    at = segment.end;
    of_path[segment.time_class] += segment.end - segment.begin;
  }
  EXPECT_EQ(at, analysis->run->result.end);
  EXPECT_EQ(of_path.by_class, analysis->summary.path.by_class);
  ASSERT_EQ(analysis->classes.size(), 1u);
  ClassTimes of_classes;
  for (const ClassSpan& span : analysis->classes[0]) of_classes[span.time_class] += span.end - span.begin;
  // The steps begin with the first op: no time lies outside them.
  EXPECT_EQ(of_classes.by_class, analysis->summary.times.by_class);
  EXPECT_TRUE(analysis->rank_paths.empty());
  EXPECT_EQ(&analysis->path_of(0), &analysis->path);
}

TEST(RunAnalysis, OnThePathIsWhatWorksCallsOrWaitsThere) {
  HandmadeRun hand;
  hand.host(OpKind::host_work, "load", 0, 4);            // on it
  hand.device(OpKind::kernel, "short", 0, 4, 5, 5, 6);   // neither its call nor its work
  hand.device(OpKind::kernel, "long", 1, 5, 6, 8, 20);   // launched after a latency
  const OpId full = hand.host(OpKind::alloc, "", 7, 8);  // beside it
  hand.run.trace.edit().storages.push_back({});
  hand.op(full).target = 0;
  const auto analysis = analysis_of(hand.finish());
  EXPECT_EQ(analysis->on_path, (std::vector<bool>{true, true, true, false}));
  Duration work{};
  for (const PathSegment& segment : analysis->path)
    if (segment.part == PathPart::work) work += segment.end - segment.begin;
  EXPECT_EQ(work, microseconds(12));
}

TEST(RunAnalysis, AnOpWithNothingButALatencyThereIsNotOnThePath) {
  HandmadeRun hand;
  const OpId first = hand.device(OpKind::kernel, "first", 0, 0, 1, 1, 9);
  const OpId wait = hand.host(OpKind::synchronize, "wait", 1, 10);  // returns 1 us after the kernel
  hand.waited(wait, WaitReason::synchronize, first);
  const auto analysis = analysis_of(hand.finish());
  ASSERT_EQ(analysis->path.size(), 3u);
  EXPECT_EQ(analysis->path[2].op, wait);
  EXPECT_EQ(analysis->path[2].part, PathPart::latency);
  EXPECT_TRUE(analysis->on_path[first]);
  EXPECT_FALSE(analysis->on_path[wait]);
}

TEST(RunAnalysis, OfSeveralRanksEachHasItsClassesAndItsPartOfThePath) {
  const auto analysis = analysis_of(late_rank());
  ASSERT_EQ(analysis->classes.size(), 2u);
  ASSERT_EQ(analysis->rank_paths.size(), 2u);
  std::size_t segments = 0;
  for (std::uint16_t rank = 0; rank < 2; ++rank) {
    Duration covered{};
    for (const ClassSpan& span : analysis->classes[rank]) covered += span.end - span.begin;
    EXPECT_EQ(covered, analysis->run->result.end);
    for (const PathSegment& segment : analysis->path_of(rank)) {
      EXPECT_EQ(analysis->run->trace->threads[analysis->run->trace->ops[segment.op].thread].rank, rank);
      ++segments;
    }
  }
  EXPECT_EQ(segments, analysis->path.size());
  // Until 400 us the run waits for rank 1.
  for (const PathSegment& segment : analysis->path_of(0)) EXPECT_GE(segment.begin, microseconds(400));
  const ClassTimes first = analysis->class_sums[0].within(analysis->classes[0], microseconds(50), microseconds(200));
  EXPECT_EQ(first[TimeClass::compute], microseconds(50));
  EXPECT_EQ(first[TimeClass::collective], microseconds(100));
}

TEST(RunAnalysis, TellsHowFarItIsAndStopsWhenTold) {
  const auto source = source_of(std::make_shared<const memwall::Run>(gpt_run()));
  std::vector<double> told;
  analyse(*source, [&](double share) {
    told.push_back(share);
    return true;
  });
  ASSERT_GE(told.size(), 4u);
  EXPECT_TRUE(std::is_sorted(told.begin(), told.end()));
  EXPECT_GE(told.front(), 0);
  EXPECT_EQ(told.back(), 1);
  for (std::size_t stop = 0; stop < told.size(); ++stop) {
    std::size_t calls = 0;
    EXPECT_THROW(analyse(*source, [&](double) { return calls++ < stop; }), LoadCancelled) << stop;
    EXPECT_EQ(calls, stop + 1) << "it went on after it was told to stop";
  }
}

// Streams that wait for each other again and again, with no work between, stand behind two kernels and no more.
TEST(RunAnalysis, StreamsThatWaitForEachOtherCostNoMoreThanTheirOps) {
  HandmadeRun hand;
  hand.device(OpKind::kernel, "a", 0, 0, 0, 0, 5);
  const OpId last = hand.device(OpKind::kernel, "b", 1, 0, 0, 0, 9);
  hand.run.trace.edit().event_count = 2;
  for (int i = 0; i < 400; ++i) {
    const auto stream = static_cast<std::uint16_t>(i % 2);
    const OpId record = hand.host(OpKind::event_record, "", 0, 0), wait = hand.host(OpKind::event_wait, "", 0, 0);
    hand.op(record).stream = stream;
    hand.op(wait).stream = static_cast<std::uint16_t>(1 - stream);
    hand.op(record).target = hand.op(wait).target = stream;
  }
  const OpId work = hand.host(OpKind::host_work, "work", 0, 11);
  hand.op(work).wait_for = WaitFor::stream;
  const auto analysis = analysis_of(hand.finish());
  ASSERT_EQ(analysis->path.size(), 2u);
  EXPECT_EQ(analysis->path[0].op, last);
  EXPECT_EQ(analysis->path[0].end, microseconds(9));
  EXPECT_EQ(analysis->path[1].op, work);
}

TEST(RunAnalysis, OfNothingIsNothing) {
  HandmadeRun hand;
  const auto analysis = analysis_of(hand.finish());
  EXPECT_TRUE(analysis->path.empty());
  ASSERT_EQ(analysis->classes.size(), 1u);
  EXPECT_EQ(analysis->class_sums[0].within(analysis->classes[0], Time{}, microseconds(1)).total(), Duration{});
}

// --- sums of classes ---

// `holes`: some time between the spans belongs to none.
std::vector<ClassSpan> random_spans(std::size_t count, bool holes, std::uint64_t seed) {
  std::vector<ClassSpan> spans;
  Time at{};
  for (std::size_t i = 0; i < count; ++i) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    if (holes && (seed >> 40) % 3 == 0) at += Duration(static_cast<std::int64_t>((seed >> 20) % 50));
    const Time end = at + Duration(static_cast<std::int64_t>((seed >> 33) % 20 + 1));
    spans.push_back({at, end, static_cast<TimeClass>((seed >> 50) % kTimeClasses)});
    at = end;
  }
  return spans;
}

ClassTimes by_hand(const std::vector<ClassSpan>& spans, Time begin, Time end) {
  ClassTimes times;
  for (const ClassSpan& span : spans)
    times[span.time_class] += std::max(Duration{}, std::min(end, span.end) - std::max(begin, span.begin));
  return times;
}

TEST(ClassSums, AreThoseOfASumOverAllSpans) {
  for (const std::size_t count : {0u, 1u, 63u, 64u, 65u, 128u, 1000u})
    for (const bool holes : {false, true}) {
      const std::vector<ClassSpan> spans = random_spans(count, holes, count + 1);
      const ClassSums sums(spans);
      const std::int64_t end = spans.empty() ? 10 : spans.back().end.count();
      std::uint64_t seed = 5;
      for (int i = 0; i < 200; ++i) {
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        const auto a = static_cast<std::int64_t>((seed >> 33) % static_cast<std::uint64_t>(end + 20)) - 10;
        const auto b = a + static_cast<std::int64_t>((seed >> 13) % static_cast<std::uint64_t>(end + 20));
        ASSERT_EQ(sums.within(spans, Time(a), Time(b)).by_class, by_hand(spans, Time(a), Time(b)).by_class)
            << count << " spans, [" << a << ", " << b << ")";
      }
    }
}

TEST(ClassSums, TheLongestClassOfEqualsIsTheFirst) {
  ClassTimes times;
  EXPECT_EQ(longest_class(times), TimeClass::compute);
  times[TimeClass::host] = times[TimeClass::copy] = microseconds(3);
  EXPECT_EQ(longest_class(times), TimeClass::copy);
  times[TimeClass::host] += Duration(1);
  EXPECT_EQ(longest_class(times), TimeClass::host);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
