// Is a capture with holes told apart from a whole one, by what is missing in it, and is one that starts late without a
// cause that matters left alone?
#include "models/workload/import/timed/capture_completeness.h"

#include <gtest/gtest.h>

#include "models/workload/import/kineto/kineto_reader.h"
#include "tests/support/scratch_folder.h"

#include <fstream>

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Launches of a stream, each with its kernel or without; times in microseconds.
class Capture {
 public:
  void launch(int at, int kernel_at, int duration, bool recorded = true, const char* call = "cudaLaunchKernel") {
    ++correlation_;
    add("aten::add", "cpu_op", at - 2, 9, "\"tid\":100", "");
    add(call, "cuda_runtime", at, 5, "\"tid\":100", "");
    if (recorded) add("k", "kernel", kernel_at, duration, "\"tid\":7", "\"device\":0,\"stream\":7,");
  }
  void call(const char* name, int at, int duration) {
    ++correlation_;
    add(name, "cuda_runtime", at, duration, "\"tid\":100", "");
  }
  void copy(int at, int copy_at, int duration) {
    ++correlation_;
    add("cudaMemcpyAsync", "cuda_runtime", at, 5, "\"tid\":100", "");
    add("Memcpy HtoD (Pinned -> Device)", "gpu_memcpy", copy_at, duration, "\"tid\":7",
        "\"device\":0,\"stream\":7,\"bytes\":4096,");
  }
  void kernel_without_call(int at, int duration) {
    ++correlation_;
    add("k", "kernel", at, duration, "\"tid\":7", "\"device\":0,\"stream\":7,");
  }

  TimedCapture read() const {
    ScratchFolder folder;
    const auto path = folder / "capture.json";
    std::ofstream(path) << "{\"schemaVersion\":1,\"traceEvents\":[" << events_ << "]}";
    return read_kineto(path);
  }
  ImportedTrace import() const { return import_timed_capture(read()); }

 private:
  void add(const char* name, const char* category, int at, int duration, const char* thread, const char* more) {
    events_ += (events_.empty() ? "" : ",") + std::string(R"({"ph":"X","cat":")") + category + R"(","name":")" + name +
               R"(","pid":1,)" + thread + ",\"ts\":" + std::to_string(1'000'000 + at) +
               ",\"dur\":" + std::to_string(duration) + ",\"args\":{" + more +
               "\"correlation\":" + std::to_string(correlation_) + "}}";
  }

  std::string events_;
  int correlation_ = 0;
};

Capture whole(int launches) {
  Capture c;
  for (int i = 0; i < launches; ++i) c.launch(100 * i, 100 * i + 8, 50);
  return c;
}

void expect(const ImportedTrace& t, Completeness state, const std::string& words) {
  EXPECT_EQ(t.trace.completeness, state) << t.trace.completeness_reason;
  EXPECT_NE(t.trace.completeness_reason.find(words), std::string::npos) << t.trace.completeness_reason;
}

TEST(CaptureCompleteness, AWholeCaptureIsComplete) {
  const ImportedTrace t = whole(60).import();
  EXPECT_EQ(t.trace.completeness, Completeness::complete) << t.trace.completeness_reason;
  EXPECT_EQ(t.trace.completeness_reason, "");
}

TEST(CaptureCompleteness, LaunchesWithoutAnyGpuWorkAreNoReplay) {
  Capture c;
  for (int i = 0; i < 268; ++i) c.launch(100 * i, 0, 0, false);
  expect(c.import(), Completeness::not_a_replay,
         "268 of 268 launches have no work on a GPU in the file: was ProfilerActivity.CUDA on?");
}

// A device that the profiler knows nothing of: calls, and none that launches.
TEST(CaptureCompleteness, AFileWithoutWorkOnADeviceIsNoReplay) {
  Capture c;
  for (int i = 0; i < 10; ++i) c.call("mtiaStreamSynchronize", 100 * i, 50);
  expect(c.import(), Completeness::not_a_replay, "no work on a GPU and no call that launches some");
}

TEST(CaptureCompleteness, GraphsWithoutTheirKernelsAreAGapOrNoReplay) {
  Capture some = whole(60);
  some.launch(7000, 7008, 50, true, "cudaGraphLaunch");
  some.launch(7100, 7108, 50, true, "cudaGraphLaunch");
  some.launch(7200, 0, 0, false, "cudaGraphLaunch");
  expect(some.import(), Completeness::gaps, "1 of 3 launches of CUDA graphs have no kernels in the file");
  Capture all = whole(60);
  for (int i = 0; i < 70; ++i) all.launch(7000 + 100 * i, 0, 0, false, "cudaGraphLaunch");
  expect(all.import(), Completeness::not_a_replay, "70 of 70 launches of CUDA graphs have no kernels in the file");
  Capture one = whole(70);  // all but one launch is recorded
  one.launch(7000, 0, 0, false, "cudaGraphLaunch");
  expect(one.import(), Completeness::gaps, "1 of 1 launch of CUDA graphs have no kernels in the file");
}

TEST(CaptureCompleteness, AFewMissingKernelsAreAGap) {
  Capture c = whole(60);
  for (int i = 0; i < 3; ++i) c.launch(6500 + 100 * i, 0, 0, false);
  expect(c.import(), Completeness::gaps, "3 of 63 launches of kernels have no kernel in the file");
}

TEST(CaptureCompleteness, WorkThatNobodyLaunchedIsNoReplay) {
  Capture c;
  for (int i = 0; i < 40; ++i) c.kernel_without_call(100 * i, 50);
  for (int i = 0; i < 10; ++i) c.launch(5000 + 100 * i, 5008 + 100 * i, 50);
  expect(c.import(), Completeness::not_a_replay, "40 of 50 pieces of work on a GPU have no call in the file");
}

// Late starts that nothing in the file explains, one of them with all that follows behind it.
TEST(CaptureCompleteness, WaitsThatDelayWhatFollowsAreAGap) {
  Capture c;
  for (int i = 0; i < 60; ++i) c.launch(10 * i, 100 * i + (i < 30 ? 8 : 1000), 98);
  const ImportedTrace t = c.import();
  EXPECT_NE(t.trace.completeness, Completeness::complete);
  EXPECT_NE(t.trace.completeness_reason.find("aits without a cause in the file"), std::string::npos)
      << t.trace.completeness_reason;
}

TEST(CaptureCompleteness, LateStartsThatNobodyFeelsAreNone) {
  Capture c;
  for (int i = 0; i < 60; ++i) c.launch(1000 * i, 1000 * i + (i % 5 == 4 ? 200 : 8), 50);
  const ImportedTrace t = c.import();
  EXPECT_EQ(t.summary.unexplained_waits, 12u);
  EXPECT_EQ(t.trace.completeness, Completeness::complete) << t.trace.completeness_reason;
}

TEST(CaptureCompleteness, StartsBeforeTheirLaunchContradictTheClocks) {
  Capture c = whole(50);
  for (int i = 0; i < 10; ++i) c.launch(6000 + 200 * i, (i == 7 ? 5880 : 5980) + 200 * i, 20);
  const ImportedTrace t = c.import();
  expect(
      t, Completeness::gaps,
      "The clocks of host and GPU contradict each other: 10 of 60 pieces of work on a GPU start before the call that "
      "launches them, by 20.00 us (median) and at most by 120.0 us, at 7.282 ms from the start");
  EXPECT_EQ(t.summary.early_starts, 0u);
  // A few say it in a note alone, and what a clock's conversion leaves open is no contradiction.
  Capture few = whole(60);
  few.launch(6500, 6450, 20);
  for (int i = 0; i < 10; ++i) few.launch(7000 + 200 * i, 6995 + 200 * i, 20);
  const ImportedTrace told = few.import();
  EXPECT_EQ(told.trace.completeness, Completeness::complete) << told.trace.completeness_reason;
  EXPECT_EQ(told.summary.before_launch, 1u);
  EXPECT_TRUE(std::any_of(told.trace.notes.begin(), told.trace.notes.end(), [](const std::string& note) {
    return note.starts_with("The clocks of host and GPU contradict each other: 1 of 71");
  }));
}

// A GPU's clock that is ahead: everything starts late, and calls return before what they wait for ends.
TEST(CaptureCompleteness, ReturnsBeforeTheEndOfWhatIsAwaitedContradictTheClocks) {
  for (const int ahead : {0, 20, 200}) {
    Capture c;
    for (int i = 0; i < 60; ++i) {
      c.launch(100 * i, 100 * i + 8 + ahead, 50);
      c.call("cudaDeviceSynchronize", 100 * i + 10, 51);
    }
    const ImportedTrace t = c.import();
    EXPECT_EQ(t.summary.returns, 60u);
    if (ahead == 0) {
      EXPECT_EQ(t.trace.completeness, Completeness::complete) << t.trace.completeness_reason;
      continue;
    }
    const std::string by = std::to_string(ahead - 3) + ".00 us";
    expect(t, Completeness::gaps_over_limit,
           "The clocks of host and GPU contradict each other: 60 of 60 calls that wait return before the work ends "
           "that they wait for, by " +
               (ahead == 20 ? by : "197.0 us") + " (median)");
    // What such clocks make of starts is not taken for another cause.
    EXPECT_EQ(t.trace.completeness_reason.find("for no replay"), std::string::npos) << t.trace.completeness_reason;
  }
}

// Of a stream that nobody named, and of a copy from pageable memory, a call may return before the work ends.
TEST(CaptureCompleteness, ReturnsFromWhatIsNotCertainAreNoContradiction) {
  Capture c = whole(60);
  c.call("cudaStreamSynchronize", 6000, 4);
  TimedCapture capture = c.read();
  capture.device_ops.back().start += microseconds(100);  // ends at 6.058 ms
  EXPECT_EQ(import_timed_capture(capture).summary.early_returns, 1u) << "there is one stream only";
  capture.device_ops.front().stream = 8;
  const ImportedTrace t = import_timed_capture(capture);
  EXPECT_EQ(t.summary.returns, 0u);
}

// A long capture without memory events is given back while it is read: what it lacks is counted before.
TEST(CaptureCompleteness, OfALongCaptureIsTheSame) {
  TimedCapture c;
  c.path = "long.json";
  c.threads.push_back({1, 1});
  const StringId name = c.strings.intern("cudaLaunchKernel"), kernel = c.strings.intern("k");
  for (std::int64_t i = 0; i < 150'000; ++i) {
    const Time at = Time{} + microseconds(100 * i);
    c.calls.push_back({.start = at, .duration = microseconds(5), .correlation = i + 1, .name = name});
    if (i >= 10'000)
      c.device_ops.push_back({.start = at + microseconds(8),
                              .duration = microseconds(50),
                              .stream = 7,
                              .correlation = i + 1,
                              .name = kernel});
  }
  expect(import_and_release_capture(c), Completeness::gaps_over_limit,
         "10000 of 150,000 launches of kernels have no kernel in the file");
}

// One copy that came 7.8 ms after its call is no latency of this machine.
TEST(CaptureCompleteness, OneSampleFarOffIsNoConstant) {
  Capture c = whole(1);
  c.launch(20000, 27800, 50);
  EXPECT_LE(c.import().trace.constants.launch_latency[0], microseconds(50));
}

// The same of the file's only copy (n = 1), beside kernels that have their own constant; a second one far off is no
// more, and of three that agree the file is believed.
TEST(CaptureCompleteness, ACopyLatencyOfOneSampleIsNoConstant) {
  const auto latency = [](int copies) {
    Capture c = whole(20);
    for (int i = 0; i < copies; ++i) c.copy(20'000 + 20'000 * i, 27'800 + 20'000 * i, 50);
    return c.import();
  };
  const auto copy = static_cast<int>(LaunchKind::copy);
  for (const int copies : {1, 2}) {
    const ImportedTrace t = latency(copies);
    EXPECT_LE(t.trace.constants.launch_latency[copy], microseconds(50)) << copies;
    EXPECT_TRUE(std::ranges::any_of(t.trace.notes, [](const std::string& note) {
      return note.find("copies") != std::string::npos && note.find("a usual value") != std::string::npos;
    })) << copies;
  }
  EXPECT_GT(latency(3).trace.constants.launch_latency[copy], microseconds(7000));
}

// Gaps up to a twentieth are told, more are asked for before a step time is printed.
TEST(CaptureCompleteness, BeyondTheLimitGapsAskFirst) {
  const auto without = [](int missing) {  // of 100 launches
    Capture c;
    for (int i = 0; i < 100; ++i) c.launch(100 * i, 100 * i + 8, 50, i >= missing);
    return c.import().trace.completeness;
  };
  EXPECT_EQ(without(0), Completeness::complete);
  EXPECT_EQ(without(2), Completeness::complete);
  EXPECT_EQ(without(3), Completeness::gaps);
  EXPECT_EQ(without(5), Completeness::gaps);
  EXPECT_EQ(without(6), Completeness::gaps_over_limit);
  EXPECT_EQ(without(50), Completeness::gaps_over_limit);
  EXPECT_EQ(without(51), Completeness::not_a_replay);
  EXPECT_FALSE(asks_first(Completeness::complete));
  EXPECT_FALSE(asks_first(Completeness::gaps));
  EXPECT_TRUE(asks_first(Completeness::gaps_over_limit));
  EXPECT_TRUE(asks_first(Completeness::not_a_replay));
  for (const Completeness worse : {Completeness::gaps_over_limit, Completeness::not_a_replay})
    EXPECT_TRUE(is_worse(worse, Completeness::gaps));
  EXPECT_TRUE(is_worse(Completeness::not_a_replay, Completeness::gaps_over_limit));
  EXPECT_EQ(to_string(Completeness::gaps_over_limit), "gaps");
}

TEST(CaptureCompleteness, ClocksAndWaitsAskBeyondTheLimit) {
  const auto early = [](int before) {  // of 100 pieces of work, 30 us before their launch
    Capture c;
    for (int i = 0; i < 100; ++i) c.launch(1000 + 200 * i, 1000 + 200 * i + (i < before ? -30 : 8), 20);
    return c.import().trace.completeness;
  };
  // By 30 us each, of a span of 20 ms.
  EXPECT_EQ(early(2), Completeness::complete);
  EXPECT_EQ(early(30), Completeness::gaps);
  EXPECT_EQ(early(40), Completeness::gaps_over_limit);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
