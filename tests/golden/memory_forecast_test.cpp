// What `memwall forecast` and `memwall watch` print, and how they refuse.
//
// Exact outputs stand in tests/golden/expected. After a deliberate change: run this program with
// MEMWALL_UPDATE_GOLDEN=1 and read the difference before committing it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/command.h"
#include "tests/support/golden.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/synthetic_snapshot.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {


// Steps of eight samples, 0.25 s apart; each holds `leak` bytes more than the one before.
std::string log_of(int steps, long long leak, long long level = 2'000'000'000) {
  static constexpr long long shape[] = {0, 300, 600, 900, 1200, 800, 400, 100};  // MB
  std::string text = "seconds,bytes\n";
  for (int s = 0; s < steps; ++s)
    for (int i = 0; i < 8; ++i)
      text += fmt::format("{:.2f},{}\n", (s * 8 + i) * 0.25, level + shape[i] * 1'000'000 + s * leak);
  return text;
}

// As nvidia-smi writes it.
constexpr const char* kDriverLog =
    "timestamp, index, memory.used [MiB]\n"
    "2026/11/21 10:00:00.000, 0, 1000 MiB\n"
    "2026/11/21 10:00:00.001, 1, 70000 MiB\n"
    "2026/11/21 10:00:01.000, 0, 3000 MiB\n"
    "2026/11/21 10:00:01.001, 1, 70000 MiB\n"
    "2026/11/21 10:00:02.000, 0, 1000 MiB\n"
    "2026/11/21 10:00:03.000, 0, 3000 MiB\n"
    "2026/11/21 10:00:04.000, 0, 1000 MiB\n"
    "2026/11/21 10:00:05.000, 0, 3000 MiB\n";

class ForecastCommand : public ::testing::Test {
 protected:
  void SetUp() override {
    write_content(folder_ / "leak.csv", log_of(12, 50'000'000));
    write_content(folder_ / "steady.csv", log_of(8, 0));
    write_content(folder_ / "driver.csv", kDriverLog);
  }

  CommandOutcome run(const std::string& arguments) {
    return run_command("'" MEMWALL_PROGRAM "' " + arguments, folder_.path());
  }

  void prints(const std::string& name, const std::string& arguments, int code = 0) {
    const CommandOutcome o = run(arguments);
    EXPECT_EQ(o.code, code) << arguments << "\n" << o.err;
    expect_golden(name + ".txt", o.out);
  }

  void refuses(const std::string& arguments, int code, const std::string& sentence) {
    const CommandOutcome o = run(arguments);
    EXPECT_EQ(o.code, code) << arguments << "\n" << o.err;
    EXPECT_NE(o.err.find(sentence), std::string::npos)
        << arguments << "\nexpected: " << sentence << "\nfound: " << o.err;
  }

  ScratchFolder folder_;
};

TEST_F(ForecastCommand, HelpTeaches) {
  prints("help_forecast", "forecast --help");
  prints("help_watch", "watch --help");
}

TEST_F(ForecastCommand, ALeakInEveryFormat) {
  prints("forecast_table", "forecast leak.csv --capacity 4.2GB --steps-ahead 3");
  prints("forecast_json", "forecast leak.csv --capacity 4.2GB --steps-ahead 2 --format json");
  prints("forecast_csv", "forecast leak.csv --steps-ahead 2 --format csv");
  prints("forecast_md", "forecast steady.csv --steps-ahead 1 --format md");
}

TEST_F(ForecastCommand, WhatWillNotFitIsCode3AndOnlyThen) {
  // The last peak is 3.75 GB, and each further step adds 50 MB: step 10 passes 4.2 GB.
  const CommandOutcome o = run("forecast leak.csv --capacity 4.2GB --steps-ahead 10");
  EXPECT_EQ(o.code, 3);
  EXPECT_NE(o.out.find("+10"), std::string::npos) << "the result is printed in full";
  EXPECT_NE(o.err.find("the expected peak of period 10 from now passes 4.200 GB"), std::string::npos) << o.err;
  EXPECT_EQ(run("forecast leak.csv --capacity 4.2GB --steps-ahead 9").code, 0);
  EXPECT_EQ(run("forecast leak.csv --capacity 4GiB --machine h100-sxm-80gb").code, 0);
}

TEST_F(ForecastCommand, TheFirstSentenceSaysWhetherItFitsAndNoFoundPeriodIsAStep) {
  const CommandOutcome o = run("forecast leak.csv --capacity 4GB --steps-ahead 6 --format csv");
  EXPECT_NE(o.out.find("verdict,1,answer,Out of memory ahead: the expected peak of period 6 from now"),
            std::string::npos)
      << o.out;
  EXPECT_NE(o.out.find("The next period is expected to hold"), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("the recording's own peak is 3.750 GB"), std::string::npos) << o.out;
  for (const char* taken_for_a_step : {"next step", "past step", "step 6", "the last step"})
    EXPECT_EQ(o.out.find(taken_for_a_step), std::string::npos) << o.out;
  // Whoever gives the period says that it is a step.
  const CommandOutcome given = run("forecast steady.csv --period 8 --capacity 4GB --steps-ahead 1 --format csv");
  EXPECT_NE(given.out.find("verdict,1,answer,It fits: the next step stays within 4.000 GB."), std::string::npos)
      << given.out;
  EXPECT_NE(given.out.find("The next step is expected to hold 3.200 GB"), std::string::npos) << given.out;
  EXPECT_NE(given.out.find("On 7 past steps such forecasts"), std::string::npos) << given.out;
  EXPECT_NE(run("forecast driver.csv --period 3 --capacity 4GB").out.find("On 1 past step such forecasts"),
            std::string::npos);
}

TEST_F(ForecastCommand, TheDriversLogIsReadForOneGpu) {
  const CommandOutcome o = run("forecast driver.csv --period 2 --steps-ahead 1 --format csv");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find("steps,1,peak_bytes,3145728000"), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("Rows of GPU 0 alone; 2 of other GPUs are left out."), std::string::npos) << o.out;
}

// Two GPUs. The first has more events; on the second, which reserved more, 100 MiB live for once, and then 30 at most.
Plain snapshot_of_a_spike() {
  constexpr std::uint64_t kFirst = 0x7f0000000000, kSecond = 0x7f1000000000;
  constexpr std::int64_t kMiB = 1 << 20;
  const auto call = [](std::vector<Plain>& trace, const char* action, std::uint64_t address, std::int64_t size) {
    trace.push_back(snapshot_entry(action, address, size));
  };
  const auto free = [&](std::vector<Plain>& trace, std::uint64_t address, std::int64_t size) {
    call(trace, "free_requested", address, size);
    call(trace, "free_completed", address, size);
  };
  std::vector<Plain> first, second;
  call(first, "segment_alloc", kFirst, 20 * kMiB);
  for (int i = 0; i < 60; ++i) {
    call(first, "alloc", kFirst, 2 * kMiB);
    call(first, "alloc", kFirst + 2 * kMiB, 2 * kMiB);
    free(first, kFirst, 2 * kMiB);
    free(first, kFirst + 2 * kMiB, 2 * kMiB);
  }
  call(second, "segment_alloc", kSecond, 100 * kMiB);
  call(second, "alloc", kSecond, 100 * kMiB);
  free(second, kSecond, 100 * kMiB);
  for (int i = 0; i < 40; ++i) {
    call(second, "alloc", kSecond, 10 * kMiB);
    call(second, "alloc", kSecond + 10 * kMiB, 20 * kMiB);
    free(second, kSecond + 10 * kMiB, 20 * kMiB);
    free(second, kSecond, 10 * kMiB);
  }
  return snapshot_of({snapshot_segment(kFirst, {snapshot_block(kFirst, 20 * kMiB, 0, "inactive")}),
                      snapshot_segment(kSecond, {snapshot_block(kSecond, 100 * kMiB, 0, "inactive")}, 1)},
                     {Plain::list(std::move(first)), Plain::list(std::move(second))});
}

TEST_F(ForecastCommand, APeriodThatMayBeAPartOfAStepHidesNoPeakOfTheRecording) {
  write_content(folder_ / "spike.pickle", pickled(snapshot_of_a_spike()));
  const CommandOutcome o = run("forecast spike.pickle --capacity 64MiB --format csv");
  EXPECT_EQ(o.code, 3) << o.out;
  EXPECT_NE(o.out.find("steps,1,peak_bytes,31457280\n"), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("forecast,highest_recorded,value,104857600\n"), std::string::npos) << o.out;
  EXPECT_NE(o.err.find("the recording itself came to 104.9 MB, more than 67.11 MB"), std::string::npos) << o.err;
  EXPECT_EQ(run("forecast spike.pickle --capacity 101MiB").code, 0);
  // Requested bytes are not all that a GPU holds.
  const CommandOutcome fits = run("forecast spike.pickle --capacity 101MiB --format csv");
  EXPECT_NE(fits.out.find("It fits as far as requested bytes go: the next 5 periods stay within"), std::string::npos)
      << fits.out;
  EXPECT_NE(fits.out.find("come on top: 104.9 MB were reserved at the snapshot's end"), std::string::npos) << fits.out;
  // Who says what a step is, is believed.
  EXPECT_EQ(run("forecast spike.pickle --period 6 --capacity 64MiB").code, 0);
  const CommandOutcome shared = run("forecast --share spike.pickle spike.pickle --capacity 160MiB --format csv");
  EXPECT_NE(shared.out.find("jobs,spike.pickle,peak_bytes,104857600\n"), std::string::npos) << shared.out;
  EXPECT_NE(shared.out.find("ways,static_by_peak,all_fit,false\n"), std::string::npos) << shared.out;
}

// Two blocks of 11 MiB, each in a segment of 12, over and over.
Plain snapshot_of_rounded_segments() {
  constexpr std::uint64_t kFirst = 0x7f0000000000, kSecond = 0x7f1000000000;
  constexpr std::int64_t kMiB = 1 << 20;
  std::vector<Plain> trace;
  for (int i = 0; i < 60; ++i) {
    for (const std::uint64_t at : {kFirst, kSecond}) {
      if (i == 0) trace.push_back(snapshot_entry("segment_alloc", at, 12 * kMiB));
      trace.push_back(snapshot_entry("alloc", at, 11 * kMiB));
    }
    for (const std::uint64_t at : {kFirst, kSecond})
      for (const char* action : {"free_requested", "free_completed"})
        trace.push_back(snapshot_entry(action, at, 11 * kMiB));
  }
  return snapshot_of({snapshot_segment(kFirst, {snapshot_block(kFirst, 12 * kMiB, 0, "inactive")}),
                      snapshot_segment(kSecond, {snapshot_block(kSecond, 12 * kMiB, 0, "inactive")})},
                     {Plain::list(std::move(trace))});
}

TEST_F(ForecastCommand, WhatTheAllocatorCannotPlaceDoesNotFitThoughRequestedBytesWould) {
  write_content(folder_ / "tight.pickle", pickled(snapshot_of_rounded_segments()));
  const CommandOutcome o = run("forecast tight.pickle --capacity 23MiB --format csv");
  EXPECT_EQ(o.code, 3) << o.out;
  EXPECT_NE(o.out.find("Does not fit: replayed with its allocator in 24.12 MB"), std::string::npos) << o.out;
  EXPECT_NE(o.err.find("the recording itself lacks 1.049 MB, though requested bytes stay below"), std::string::npos)
      << o.err;
  EXPECT_EQ(run("memory tight.pickle --capacity 23MiB").code, 3) << "both verbs say the same";
  EXPECT_EQ(run("forecast tight.pickle --capacity 24MiB").code, 0);
}

TEST_F(ForecastCommand, ARunWhoseMemoryIsNotRecordedIsNotForecastAsEmpty) {
  write_content(folder_ / "kernels.json", R"({"traceEvents":[
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":5,"ts":100,"dur":60},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":5,"ts":110,"dur":5,"args":{"correlation":1}},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":130,"dur":20,"args":{"stream":7,"device":0,"correlation":1}}
]})");
  ASSERT_EQ(run("run kernels.json --machine h100-sxm-80gb -o unknown.h5").code, 0);
  refuses("forecast unknown.h5 --capacity 80GB", 6, "unknown.h5: what its memory holds is not recorded");
}

TEST_F(ForecastCommand, SharingATable) {
  prints("forecast_share_table", "forecast --share leak.csv steady.csv --machine a100-sxm-40gb --steps 4");
  prints("forecast_share_json", "forecast --share leak.csv steady.csv --capacity 6.4GB --steps 4 --format json");
  const CommandOutcome o = run("forecast --share leak.csv steady.csv --capacity 3GB");
  EXPECT_EQ(o.code, 3);
  EXPECT_NE(o.err.find("no way of sharing 3.000 GB lets all 2 jobs run"), std::string::npos) << o.err;
}

TEST_F(ForecastCommand, BadInputsAreSentences) {
  const auto log = [&](const std::string& text) { write_content(folder_ / "bad.csv", text); };
  refuses("forecast", 2, "a FILE is missing");
  refuses("forecast nothing.csv", 6, "there is no such file");
  refuses("forecast leak.csv --capacity 80", 2, "--capacity 80");
  refuses("forecast leak.csv --coverage 1.5", 2, "--coverage");
  refuses("forecast leak.csv --steps-ahead 0", 2, "--steps-ahead");
  refuses("forecast leak.csv --period 90", 2, "expected at least 2 steps");
  refuses("forecast leak.csv --share steady.csv leak.csv", 2, "one too many");
  refuses("forecast --share leak.csv", 2, "--share takes 2 to 12 files");
  refuses("forecast --share leak.csv steady.csv", 2, "give --capacity or --machine");
  log("seconds,bites\n1,2\n");
  refuses("forecast bad.csv", 6, "bad.csv:1: the first line names no column for the used memory");
  log("seconds,bytes\n0,5\n1,x\n");
  refuses("forecast bad.csv", 6, "bad.csv:3: 'x' is no amount of memory");
  log("seconds,bytes\n0,5\n1,-1\n");
  refuses("forecast bad.csv", 6, "bad.csv:3: '-1' is no amount of memory");
  log("seconds,bytes\n1,5\n0,5\n");
  refuses("forecast bad.csv", 6, "bad.csv:3: time goes back by 1 s");
  log("seconds,bytes\n1\n");
  refuses("forecast bad.csv", 6, "bad.csv:2: the row has 1 columns");
  log("timestamp, memory.used [MiB]\n2026/02/30 10:00:00.000, 5 MiB\n");
  refuses("forecast bad.csv", 6, "is no time; expected a date");
  log("timestamp, memory.used [GiB]\n");
  refuses("forecast bad.csv", 6, "has an unknown unit");
  log("seconds,bytes\n");
  refuses("forecast bad.csv", 6, "there is no sample");
  log("seconds,bytes\n0,1\n1,1\n2,1\n");
  refuses("forecast bad.csv", 2, "no period is found");
}

TEST_F(ForecastCommand, WatchReadsALog) {
  prints("watch_csv", "watch --csv leak.csv --interval 4 --samples 96 --capacity 4.2GB");
  EXPECT_EQ(run("watch --csv - --interval 4 --capacity 4.2GB < leak.csv").out.substr(0, 14), "standard input");
  refuses("watch --csv nothing.csv", 6, "the log cannot be opened");
  refuses("watch --csv . --samples 1", 6, "this is a folder");
  write_content(folder_ / "bad.csv", "seconds,bytes\n0,5\n1,x\n");
  refuses("watch --csv bad.csv --samples 9", 6, "bad.csv:3: 'x' is no amount of memory");
}

TEST_F(ForecastCommand, WatchFollowsAGrowingFileAndEndsAtASignal) {
  // 40 samples are there, the rest comes in two parts, the first of which ends within a line.
  const std::string whole = log_of(12, 0);
  std::size_t cut = 0;
  for (int line = 0; line < 41; ++line) cut = whole.find('\n', cut) + 1;
  write_content(folder_ / "log.csv", whole.substr(0, cut));
  write_content(folder_ / "more1", whole.substr(cut, 3));
  write_content(folder_ / "more2", whole.substr(cut + 3));
  const CommandOutcome o =
      run_command("( sleep 0.4; cat more1 >> log.csv; sleep 0.4; cat more2 >> log.csv ) & '" MEMWALL_PROGRAM
                  "' watch --csv log.csv --interval 2 --samples 96; wait",
                  folder_.path());
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find("    22.000 s"), std::string::npos) << o.out;
  const CommandOutcome stopped = run_command(
      "'" MEMWALL_PROGRAM "' watch --csv log.csv & pid=$!; sleep 0.7; kill -INT $pid; wait $pid; echo ended with $?",
      folder_.path());
  EXPECT_NE(stopped.out.find("ended with 0"), std::string::npos) << stopped.out << stopped.err;
}

// A driver of ours: one GPU of 1000 MB, whose use grows by 10 MB with every question.
constexpr const char* kDriver =
    "typedef struct { unsigned long long total, free, used; } Memory;\n"
    "static unsigned long long used = 100000000;\n"
    "int nvmlInit_v2(void) { return 0; }\n"
    "int nvmlShutdown(void) { return 0; }\n"
    "const char *nvmlErrorString(int e) { return e == 7 ? \"asleep\" : \"bad\"; }\n"
    "int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return 0; }\n"
    "int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { *d = (void *)(unsigned long)(i + 1); return i == 1 ? 7 "
    ": 0; }\n"
    "int nvmlDeviceGetMemoryInfo(void *d, Memory *m) { m->total = 1000000000; m->used = used; used += 10000000; return "
    "0; }\n"
    "int nvmlDeviceGetName(void *d, char *s, unsigned n) { const char t[] = \"Paper GPU\"; for (unsigned i = 0; i < "
    "sizeof t; ++i) s[i] = t[i]; return 0; }\n";

TEST_F(ForecastCommand, WatchAsksTheDriver) {
  refuses("watch --nvml ./nothing.so", 2, "no NVIDIA driver can be asked");
  refuses("watch --nvml ./nothing.so", 2, "--csv FILE reads a log of samples");
  write_content(folder_ / "driver.c", kDriver);
  if (run_command("cc -shared -fPIC driver.c -o driver.so", folder_.path()).code != 0)
    GTEST_SKIP() << "no C compiler to build a driver with";
  const CommandOutcome o = run("watch --nvml ./driver.so --interval 0.001 --samples 80");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find("GPU 0 (Paper GPU), 1.000 GB"), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("  blocks of "), std::string::npos) << o.out;  // no period: eight blocks
  EXPECT_NE(o.out.find("OUT OF MEMORY in"), std::string::npos) << o.out;
  EXPECT_EQ(std::count(o.out.begin(), o.out.end(), '\n'), 81);
  refuses("watch --nvml ./driver.so --gpu 2", 2, "there is no GPU 2; the driver knows 2, from 0");
  refuses("watch --nvml ./driver.so --gpu 1", 2, "GPU 1 cannot be opened (asleep)");
  write_content(folder_ / "other.c", "int nvmlInit_v2(void) { return 0; }\n");
  ASSERT_EQ(run_command("cc -shared -fPIC other.c -o other.so", folder_.path()).code, 0);
  refuses("watch --nvml ./other.so", 2, "has no function nvmlShutdown: it is no NVML");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
