// Is a run's memory snapshot what PyTorch's allocator would have recorded: does it hold as much at every instant as the
// run, and does `memwall memory` find every block where the file says?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fstream>
#include <sstream>

#include "models/workload/import/snapshot/snapshot_reader.h"
#include "models/workload/memory/recording_replay.h"
#include "sim/policy/registry.h"
#include "sim/trace/repeat.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/test_machine.h"
#include "traces/run/export/export_snapshot.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::vector<std::string> kSettings = {"", "expandable_segments:True", "roundup_power2_divisions:4",
                                            "max_split_size_mb:30"};

struct Exported {
  memwall::Run run;
  std::string difference;
  MemoryRecording recording;
};

// Of a GPT; `share`: of the peak, that the device holds, in percent.
Exported random_export(int share, Pager* pager = nullptr) {
  GptShape shape;
  shape.layers = *rc::gen::inRange(1, 5);
  shape.hidden = 64 * *rc::gen::inRange(1, 6);
  shape.batch = *rc::gen::inRange(1, 5);
  shape.sequence = 64 * *rc::gen::inRange(1, 4);
  shape.launch_cost = microseconds(*rc::gen::inRange(0, 8));
  const SharedTrace trace = repeated(gpt_step(shape), static_cast<std::uint32_t>(*rc::gen::inRange(1, 3)));
  Machine machine = test_machine();
  RunSettings settings;
  settings.allocator_settings = parse_allocator_settings(*rc::gen::elementOf(kSettings));
  if (share > 0) {
    const memwall::Run whole = simulate_and_record(trace, machine, settings);
    Tier& hbm = machine.tiers[static_cast<std::size_t>(machine.tier("hbm"))];
    hbm.capacity = whole.result.tiers[0].peak_reserved * share / 100;
  }
  settings.pager = pager;
  Exported exported{.run = simulate_and_record(trace, machine, settings), .difference = {}, .recording = {}};
  const ScratchFolder folder;
  {
    std::ofstream out(folder / "step.pickle", std::ios::binary);
    exported.difference = export_snapshot(exported.run, out);
  }
  exported.recording = read_snapshot(folder / "step.pickle");
  return exported;
}

RC_GTEST_PROP(SnapshotExport, ReplaysBlockByBlock, ()) {
  const Exported e = random_export(0);
  RC_ASSERT(e.difference == "");
  RC_ASSERT(e.recording.devices.size() == 1u);
  const DeviceRecording& device = e.recording.devices.front();
  const RecordingReplay replay =
      replay_as_recorded(e.recording, device, find_start_state(device, e.recording.settings));
  const ReplayCheck& check = *replay.check;
  RC_ASSERT(check.allocs > 0u);
  RC_ASSERT(check.placements_equal == check.allocs);
  RC_ASSERT(check.segment_allocs_equal == check.segment_allocs_recorded);
  RC_ASSERT(check.segment_frees_equal == check.segment_frees_recorded);
  RC_ASSERT(check.final_blocks > 0u);
  RC_ASSERT(check.final_segments_equal == check.final_segments);
  RC_ASSERT(check.final_blocks_equal == check.final_blocks);
  RC_ASSERT(replay.peak.allocated_bytes == e.run.result.tiers[0].peak_allocated);
  RC_ASSERT(replay.peak_reserved == e.run.result.tiers[0].peak_reserved);
}

std::size_t ooms(const Exported& e) {
  return static_cast<std::size_t>(
      std::ranges::count(e.recording.devices.front().events, MemoryEvent::Action::oom, &MemoryEvent::action));
}

RC_GTEST_PROP(SnapshotExport, AStepThatDoesNotFitFindsNoMemoryOnce, ()) {
  const Exported e = random_export(*rc::gen::inRange(40, 99));
  RC_ASSERT(e.difference == "");
  RC_ASSERT((ooms(e) > 0) == !e.run.result.fits);
}

RC_GTEST_PROP(SnapshotExport, WhatAPagerMovesComesAndGoes, ()) {
  const PolicySpec spec = parse_policy("lru");
  const auto pager = spec.info->make_pager(spec.arguments);
  const Exported e = random_export(*rc::gen::inRange(60, 110), pager.get());
  std::size_t allocs = 0, begins = 0;
  for (const MemoryEvent& event : e.recording.devices.front().events)
    allocs += event.action == MemoryEvent::Action::alloc ? 1 : 0;
  for (const Residency& residency : e.run.residency)
    begins += residency.tier == 0 && e.run.trace->storages[residency.storage].bytes > 0 ? 1 : 0;
  RC_ASSERT(allocs == begins);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
