// Does a run's memory snapshot say what the run says, and does it refuse what none can be made of?
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "models/workload/import/snapshot/snapshot_reader.h"
#include "models/workload/import/snapshot/snapshot_step.h"
#include "sim/error.h"
#include "sim/trace/ranks.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/step_program.h"
#include "tests/support/test_machine.h"
#include "traces/run/export/export_snapshot.h"
#include "traces/run/export/pickle_text.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Action = MemoryEvent::Action;

MemoryRecording recorded(const Run& run) {
  const ScratchFolder folder;
  {
    std::ofstream out(folder / "step.pickle", std::ios::binary);
    EXPECT_EQ(export_snapshot(run, out), "");
  }
  return read_snapshot(folder / "step.pickle");
}

// A weight from before, two activations that come and go, one of which stays.
Trace small_step() {
  StepProgram p;
  const StorageId weight = p.preexisting(4096, StorageKind::parameter, "head.weight");
  p.module("head");
  const StorageId first = p.make(1000, "first"), second = p.make(MiB(30), "second");
  p.op("mm", {weight}, {first, second});
  p.backward();
  p.op("mm_backward", {first, weight}, {weight});
  p.drop(first);
  return std::move(p).finish();
}

std::string text_of(const MemoryRecording& recording) {
  std::string text;
  for (const DeviceRecording& device : recording.devices)
    for (const MemoryEvent& event : device.events)
      if (event.action == Action::alloc || event.action == Action::free_requested ||
          event.action == Action::free_completed || event.action == Action::oom)
        text += std::to_string(device.device) + " " + std::string(to_string(event.action)) + " " +
                std::to_string(event.size) + " " + std::to_string(event.time_us) + "\n";
  return text;
}

TEST(SnapshotExport, EventsAreTheRunsWithItsTimes) {
  const MemoryRecording recording = recorded(simulate_and_record(small_step(), test_machine(), {}));
  EXPECT_EQ(text_of(recording),
            "0 alloc 4096 0\n0 alloc 1000 0\n0 alloc 31457280 0\n0 free_requested 1000 0\n0 free_completed 1000 0\n");
  EXPECT_TRUE(recording.has_times);
  ASSERT_EQ(recording.annotations.size(), 2u);
  EXPECT_EQ(recording.annotations[0].stage, "START");
  EXPECT_EQ(recording.annotations[1].name, "step 0");
  Bytes live = 0;
  for (const RecordedSegment& segment : recording.devices[0].segments)
    for (const RecordedBlock& block : segment.blocks)
      live += block.state == RecordedBlock::State::allocated ? block.requested : 0;
  EXPECT_EQ(live, 4096 + MiB(30));
}

TEST(SnapshotExport, ImportedAgainItKnowsPhasesAndKinds) {
  const ScratchFolder folder;
  {
    std::ofstream out(folder / "step.pickle", std::ios::binary);
    export_snapshot(simulate_and_record(small_step(), test_machine(), {}), out);
  }
  const Trace trace = import_snapshot(folder / "step.pickle").trace;
  ASSERT_EQ(trace.storages.size(), 3u);
  EXPECT_EQ(trace.storages[0].kind, StorageKind::parameter);
  std::string phases;
  for (const Op& op : trace.ops)
    if (op.kind == OpKind::alloc || op.kind == OpKind::free) phases += std::string(to_string(op.phase)) + " ";
  EXPECT_EQ(phases, "unknown forward forward backward ");
}

TEST(SnapshotExport, AFreeThatAnotherStreamHoldsUpIsRequestedBefore) {
  StepProgram p;
  p.builder().add_stream("side", StreamRole::communication);
  const StorageId first = p.make(MiB(1), "first");
  p.op("mm", {}, {first}, {.duration = microseconds(10)});
  Op free = p.here(OpKind::free);
  free.target = first;
  free.wait_for = WaitFor::stream;
  p.builder().append(free);
  p.make(MiB(3), "second");
  const MemoryRecording recording = recorded(simulate_and_record(std::move(p).finish(), test_machine(), {}));
  EXPECT_EQ(text_of(recording),
            "0 alloc 1048576 0\n0 free_requested 1048576 0\n0 alloc 3145728 0\n0 free_completed 1048576 10\n");
}

TEST(SnapshotExport, ARequestWithoutMemoryIsToldOnce) {
  Machine machine = test_machine();
  machine.tiers[static_cast<std::size_t>(machine.tier("hbm"))].capacity = MiB(20);
  const MemoryRecording recording = recorded(simulate_and_record(small_step(), machine, {}));
  EXPECT_EQ(text_of(recording),
            "0 alloc 4096 0\n0 alloc 1000 0\n0 oom 31457280 0\n0 alloc 31457280 0\n0 free_requested 1000 0\n"
            "0 free_completed 1000 0\n");
}

TEST(SnapshotExport, RanksAreDevicesWithAddressesOfTheirOwn) {
  Trace joined = joined_ranks({{0, small_step()}, {1, small_step()}});
  const MemoryRecording recording = recorded(simulate_and_record(std::move(joined), test_machine(), {}));
  ASSERT_EQ(recording.devices.size(), 2u);
  EXPECT_EQ(recording.devices[0].events.size(), recording.devices[1].events.size());
  EXPECT_LT(recording.devices[0].segments.back().address, recording.devices[1].segments.front().address);
  EXPECT_EQ(recording.annotations.size(), 4u);
}

TEST(SnapshotExport, ARunThatHoldsAnotherAmountIsTold) {
  memwall::Run run = simulate_and_record(small_step(), test_machine(), {});
  for (MemoryPoint& point : run.memory[0]) point.reserved += MiB(2);
  std::ostringstream out;
  EXPECT_NE(export_snapshot(run, out).find("of hbm in use and"), std::string::npos);
}

TEST(SnapshotExport, RefusesWhatPytorchsAllocatorDidNotServe) {
  const auto refusal = [](const Trace& trace, const char* allocator, const char* settings = "") -> std::string {
    RunSettings asked;
    asked.allocator = allocator;
    asked.allocator_settings = parse_allocator_settings(settings);
    std::ostringstream out;
    try {
      export_snapshot(simulate_and_record(trace, test_machine(), asked), out);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(refusal(small_step(), "ideal").find("allocator is ideal"), std::string::npos);
  EXPECT_NE(refusal(small_step(), "pytorch", "backend:cudaMallocAsync").find("is cudaMallocAsync"), std::string::npos);
  StepProgram none;
  none.op("mm", {}, {});
  EXPECT_NE(refusal(std::move(none).finish(), "pytorch").find("knows its allocations"), std::string::npos);
}

TEST(PickleText, NumbersOfEverySizeReadBack) {
  // As a snapshot's field whose range is the widest.
  for (const std::int64_t size : {std::int64_t{0}, std::int64_t{255}, std::int64_t{256}, std::int64_t{65535},
                                  std::int64_t{65536}, std::int64_t{1} << 31, std::int64_t{1} << 45}) {
    StepProgram p;
    p.preexisting(size, StorageKind::parameter, std::string(300, 'x'));
    p.preexisting(7, StorageKind::parameter, "y");
    const MemoryRecording recording = recorded(simulate_and_record(std::move(p).finish(), test_machine(), {}));
    const std::string expected = size == 0 ? "" : "0 alloc " + std::to_string(size) + " 0\n";
    EXPECT_NE((text_of(recording) + "0 alloc 7 0\n").find(expected + "0 alloc 7 0\n"), std::string::npos)
        << text_of(recording);
  }
}

// The viewer of pytorch.org/memory_viz takes each batch as the arguments of one call, which may not be ever so many.
TEST(PickleText, LongListsAreWrittenInBatches) {
  PickleText pickle;
  pickle.begin_list();
  for (int i = 0; i < 2500; ++i) {
    pickle.next_item();
    pickle.boolean(true);
  }
  pickle.end_list();
  std::size_t batches = 1, in_batch = 0, most = 0;
  for (std::size_t i = 4; i < pickle.bytes().size(); ++i) {
    const char c = pickle.bytes()[i];
    batches += c == '(' ? 1 : 0;
    in_batch = c == '(' ? 0 : in_batch + (c == '\x88' ? 1 : 0);
    most = std::max(most, in_batch);
  }
  EXPECT_EQ(batches, 3u);
  EXPECT_EQ(most, 1000u);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
