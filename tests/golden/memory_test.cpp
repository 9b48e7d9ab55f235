// Does `memwall memory` print exactly what it should, and does every bad input end in its exit code with a sentence?
//
// Exact outputs stand in tests/golden/expected. After a deliberate change: run this program with
// MEMWALL_UPDATE_GOLDEN=1 and read the difference before committing it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "tests/support/command.h"
#include "tests/support/golden.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/snapshot_variants.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {


// In 100 MiB: 60 and 30 MiB are taken, the 60 go back and make two of 20 MiB, of which the first goes back too. 40 MiB
// are cached then, and 45 MiB are refused (the third golden vector of the allocator).
Plain refused_snapshot(std::int64_t device_free = 10 << 20) {
  constexpr std::uint64_t kA = 0x7f0000000000, kB = 0x7f0010000000;
  constexpr std::int64_t kMiB = 1 << 20, kTime = 1'700'000'000'000'000;
  const Plain frames =
      Plain::list({snapshot_frame("forward", "model.py", 12), snapshot_frame("<module>", "train.py", 3)});
  const auto entry = [&](const char* action, std::uint64_t address, std::int64_t mebibytes) {
    return snapshot_entry(action, address, mebibytes * kMiB, frames, kTime);
  };
  Plain refusal = snapshot_entry("oom", 0, 45 * kMiB, frames, kTime);
  refusal.set("device_free", device_free);
  std::vector<Plain> trace = {entry("segment_alloc", kA, 60),
                              entry("alloc", kA, 60),
                              entry("segment_alloc", kB, 30),
                              entry("alloc", kB, 30),
                              entry("free_requested", kA, 60),
                              entry("free_completed", kA, 60),
                              entry("alloc", kA, 20),
                              entry("alloc", kA + 20 * kMiB, 20),
                              entry("free_requested", kA, 20),
                              entry("free_completed", kA, 20),
                              refusal};
  return snapshot_of({snapshot_segment(kA, {snapshot_block(kA, 20 * kMiB, 0, "inactive"),
                                            snapshot_block(kA + 20 * kMiB, 20 * kMiB, 20 * kMiB),
                                            snapshot_block(kA + 40 * kMiB, 20 * kMiB, 0, "inactive")}),
                      snapshot_segment(kB, {snapshot_block(kB, 30 * kMiB, 30 * kMiB)})},
                     {Plain::list(std::move(trace))});
}

// A parameter of 40 MiB and activations of 60, each in a segment of its own.
Plain snapshot_of_two_kinds() {
  constexpr std::uint64_t kA = 0x7f0000000000, kB = 0x7f0010000000;
  constexpr std::int64_t kMiB = 1 << 20, kTime = 1'700'000'000'000'000;
  const Plain made = Plain::list({snapshot_frame("reset_parameters", "model.py", 5)});
  const Plain forward = Plain::list({snapshot_frame("forward", "model.py", 12)});
  std::vector<Plain> trace;
  trace.push_back(snapshot_entry("segment_alloc", kA, 40 * kMiB, made, kTime));
  trace.push_back(snapshot_entry("alloc", kA, 40 * kMiB, made, kTime));
  trace.push_back(snapshot_entry("segment_alloc", kB, 60 * kMiB, forward, kTime));
  trace.push_back(snapshot_entry("alloc", kB, 60 * kMiB, forward, kTime));
  return snapshot_of({snapshot_segment(kA, {snapshot_block(kA, 40 * kMiB, 40 * kMiB)}),
                      snapshot_segment(kB, {snapshot_block(kB, 60 * kMiB, 60 * kMiB)})},
                     {Plain::list(std::move(trace))});
}

class MemoryVerb : public ::testing::Test {
 protected:
  void SetUp() override {
    write_content(folder_ / "small.pickle", pickled(small_snapshot()));
    write_content(folder_ / "refused.pickle", pickled(refused_snapshot()));
    write_content(folder_ / "devices.pickle", pickled(snapshot_of_two_devices()));
  }

  CommandOutcome run(const std::string& arguments) {
    return run_command("'" MEMWALL_PROGRAM "' memory " + arguments, folder_.path());
  }

  void prints(const std::string& arguments, const std::string& expected, int code = 0) {
    const CommandOutcome o = run(arguments);
    EXPECT_EQ(o.code, code) << arguments << "\n" << o.err;
    expect_golden(expected, o.out, arguments);
  }

  void refuses(const std::string& arguments, int code, const std::vector<std::string>& sentences) {
    const CommandOutcome o = run(arguments);
    EXPECT_EQ(o.code, code) << arguments << "\n" << o.err;
    EXPECT_EQ(o.out, "") << arguments;
    for (const std::string& sentence : sentences)
      EXPECT_NE(o.err.find(sentence), std::string::npos) << arguments << "\nexpected: " << sentence << "\n" << o.err;
  }

  ScratchFolder folder_;
};

TEST_F(MemoryVerb, Explains) {
  prints("small.pickle", "memory_table.txt");
  prints("small.pickle --format json", "memory_json.txt");
  prints("small.pickle --format csv", "memory_csv.txt");
}

TEST_F(MemoryVerb, ExplainsARefusedRequestAndSearches) {
  prints("refused.pickle --search", "memory_refused.txt");
  prints("refused.pickle --search --format json", "memory_refused_json.txt");
}

TEST_F(MemoryVerb, ReplaysUnderOtherConditions) {
  prints("refused.pickle --alloc-conf expandable_segments:True --capacity 120MiB", "memory_expandable.txt");
  const CommandOutcome tight = run("refused.pickle --capacity 100MiB --full");
  EXPECT_EQ(tight.code, 3);
  EXPECT_NE(tight.err.find("does not fit"), std::string::npos) << tight.err;
  EXPECT_NE(tight.out.find("OUT OF MEMORY"), std::string::npos) << tight.out;
  EXPECT_EQ(run("refused.pickle --allocator cuda_async --capacity 110MiB").code, 0);
}

// The machine's name stands for its usable memory.
TEST_F(MemoryVerb, AsksWhetherItFitsAMachine) {
  const CommandOutcome o = run("refused.pickle --machine a100-sxm-40gb --format json");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find("\"capacity_bytes\": 41"), std::string::npos) << o.out.substr(0, 600);
}

TEST_F(MemoryVerb, WritesEveryEvent) {
  EXPECT_EQ(run("small.pickle --timeline events.csv").code, 0);
  expect_golden("memory_timeline.csv", content_of(folder_ / "events.csv"));
  refuses("small.pickle --timeline small.pickle", 2, {"small.pickle"});
}

TEST_F(MemoryVerb, ChoosesADevice) {
  EXPECT_NE(run("devices.pickle --device 0").out.find("device 0"), std::string::npos);
  EXPECT_NE(run("devices.pickle --device 2").out.find("device 2"), std::string::npos);
  refuses("devices.pickle --device 5", 2, {"--device 5", "it has 0, 2"});
}

// Both have two events; device 2 has two segments, device 0 has one.
TEST_F(MemoryVerb, TheDeviceThatReservedMostIsThatOfThePictureToo) {
  EXPECT_NE(run("devices.pickle").out.find("device 2"), std::string::npos);
  const CommandOutcome picture = run_command("'" MEMWALL_PROGRAM "' render devices.pickle", folder_.path());
  EXPECT_EQ(picture.code, 0) << picture.err;
  EXPECT_NE(picture.out.find("device 2"), std::string::npos);
}

TEST_F(MemoryVerb, FitsATerminal) {
  for (const char* arguments : {"small.pickle", "refused.pickle --search", "refused.pickle --capacity 100MiB"}) {
    std::istringstream text(run(arguments).out);
    for (std::string line; std::getline(text, line);) EXPECT_LE(line.size(), 120u) << arguments << "\n" << line;
  }
}

TEST_F(MemoryVerb, SaysWhetherAnySettingFits) {
  EXPECT_NE(run("refused.pickle --search --capacity 70MiB").out.find(" segments: 0 of "), std::string::npos);
  const std::string ample = run("refused.pickle --search --capacity 200MiB").out;
  EXPECT_NE(ample.find(" fit\n"), std::string::npos);
  EXPECT_EQ(ample.find(" segments: 0 of "), std::string::npos);
}

// Why it ran out and what lets it run: one command.
TEST_F(MemoryVerb, WhatASettingMayMendIsSearchedUnasked) {
  EXPECT_NE(run("refused.pickle").out.find("Settings tried"), std::string::npos);
  EXPECT_EQ(run("small.pickle").out.find("Settings tried"), std::string::npos) << "it never ran out of memory";
  const std::string lives = run("refused.pickle --capacity 70MiB").out;
  EXPECT_NE(lives.find("What lives is why, not fragmentation."), std::string::npos) << lives;
}

TEST_F(MemoryVerb, AdvisesOnlyWhatCanBeEnough) {
  write_content(folder_ / "kinds.pickle", pickled(snapshot_of_two_kinds()));
  const auto advice = [&](const std::string& capacity) {
    std::string text;  // lines are broken anywhere
    for (const char c : run("kinds.pickle --capacity " + capacity).out)
      if (c != ' ' || text.empty() || text.back() != ' ') text += c == '\n' ? ' ' : c;
    return text;
  };
  const auto says = [&](const std::string& capacity, const std::string& part) {
    EXPECT_NE(advice(capacity).find(part), std::string::npos) << capacity << "\n" << advice(capacity);
  };
  says("50MiB",
       "Make the batch smaller or checkpoint: without any activations at most 41.94 MB are requested at once.");
  says("30MiB",
       "It takes several changes together: make the batch smaller or checkpoint; shard the parameters over GPUs "
       "(ZeRO-3, FSDP): without any activations and parameters at most 0 B");
  // The parameters alone take what there is: activations are not the remedy, however many they are.
  write_content(folder_ / "refused_more.pickle", pickled(refused_snapshot(1 << 20)));
  EXPECT_NE(run("refused_more.pickle --capacity 10MiB").out.find("without any activations"), std::string::npos);
}

TEST_F(MemoryVerb, WhatRanOutOfMemoryDoesNotFit) {
  const std::string json = run("refused.pickle --format json").out;
  EXPECT_NE(json.find("\"fits\": false,\n  \"missing_bytes\": 36700160"), std::string::npos) << json.substr(0, 2000);
  EXPECT_NE(json.find("\"capacity_bytes\": 104857600"), std::string::npos) << "90 MiB reserved, 10 left";
  const std::string fits = run("small.pickle --format json").out;
  EXPECT_NE(fits.find("\"fits\": true,\n  \"missing_bytes\": 0"), std::string::npos) << fits.substr(0, 2000);
}

TEST_F(MemoryVerb, OtherSettingsAreReplayedInWhatTheRecordingHad) {
  const CommandOutcome o = run("refused.pickle --alloc-conf garbage_collection_threshold:0.6");
  EXPECT_EQ(o.code, 3);
  EXPECT_NE(o.out.find("It does not fit in the 104.9 MB that the recording had"), std::string::npos) << o.out;
  const CommandOutcome fits = run("refused.pickle --alloc-conf backend:cudaMallocAsync");
  EXPECT_EQ(fits.code, 0) << fits.err;
  EXPECT_NE(fits.out.find("Replayed as asked, it fits in the 104.9 MB that the recording had"), std::string::npos)
      << fits.out;
}

TEST_F(MemoryVerb, ARefusalDespiteRoomOnTheDeviceIsALimitOfTheProcess) {
  write_content(folder_ / "limited.pickle", pickled(refused_snapshot(70 << 20)));
  const CommandOutcome o = run("limited.pickle");
  EXPECT_NE(o.out.find("which is more: a limit of the process was reached"), std::string::npos) << o.out;
  EXPECT_NE(o.out.find("less than that"), std::string::npos) << o.out;
  EXPECT_EQ(o.out.find("Fragmentation is why"), std::string::npos) << "40 MiB lie in the cache, 45 were asked for";
  EXPECT_NE(run("limited.pickle --format json").out.find("\"fits\": false,\n  \"missing_bytes\": null"),
            std::string::npos);
  // Cache and device together had enough, and the sentence adds them up.
  EXPECT_NE(run("refused.pickle").out.find("52.43 MB with what the device had"), std::string::npos);
}

TEST_F(MemoryVerb, RefusesWhatMakesNoSense) {
  refuses("small.pickle --alloc-conf expandable_segment:True", 2, {"expandable_segment", "expandable_segments"});
  refuses("small.pickle --alloc-conf max_split_size_mb:3", 2, {"max_split_size_mb"});
  refuses("small.pickle --allocator pytroch", 2, {"pytroch", "pytorch"});
  refuses("small.pickle --allocator arena", 2, {"--allocator arena", "--search"});
  refuses("small.pickle --allocator stitching --alloc-conf expandable_segments:True", 2, {"'pytorch'", "'stitching'"});
  refuses("small.pickle --capacity 40Gib", 2, {"--capacity 40Gib"});
  refuses("small.pickle --capacity 1GiB --machine a100-sxm-40gb", 2, {"give one"});
  refuses("small.pickle --machine a100", 2, {"a100"});
  refuses("absent.pickle", 6, {"absent.pickle"});
}

TEST_F(MemoryVerb, RefusesHostileAndDamagedFiles) {
  // A pickle that would call os.system when loaded by a general unpickler.
  write_content(folder_ / "hostile.pickle", std::string("\x80\x02") + "cos\nsystem\nX\x04\x00\x00\x00true\x85R.");
  refuses("hostile.pickle", 6, {"hostile.pickle", "GLOBAL"});
  const std::string whole = content_of(folder_ / "small.pickle");
  write_content(folder_ / "cut.pickle", whole.substr(0, whole.size() / 2));
  refuses("cut.pickle", 6, {"cut.pickle", "byte"});
  write_content(folder_ / "text.pickle", "{\"segments\": []}");
  refuses("text.pickle", 6, {"text.pickle"});
}

// A pickle is a step without kernels for the verbs that replay steps, and they name the verb that is exact.
TEST_F(MemoryVerb, OtherVerbsTakeASnapshotAsAStep) {
  const auto outcome = [&](const std::string& arguments) {
    return run_command("'" MEMWALL_PROGRAM "' " + arguments, folder_.path());
  };
  for (const char* arguments : {"inspect small.pickle", "run small.pickle --machine a100-sxm-40gb"}) {
    const CommandOutcome o = outcome(arguments);
    EXPECT_EQ(o.code, 0) << o.err;
    EXPECT_NE(o.out.find("A memory snapshot has no kernels"), std::string::npos) << o.out;
    EXPECT_NE(o.out.find("`memwall memory`"), std::string::npos) << o.out;
  }
  const CommandOutcome nowhere = outcome("run small.pickle");
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_NE(nowhere.err.find("does not say on which machine it was measured"), std::string::npos) << nowhere.err;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
