// A folder as those of validate/data, made up: benchmarks as a known machine would measure them, what calibrate
// makes of them, and executions as that machine would have them, or a little slower.
#pragma once

#include <filesystem>
#include <string>

#include "models/hw/machine_file.h"
#include "tests/support/known_measurements.h"
#include "tests/support/offload_chain.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/synthetic_execution.h"
#include "validate/calibrate/calibrate.h"
#include "validate/measurement/results_file.h"
#include "validate/replay/schedule.h"

namespace memwall {

inline Machine host_like_machine() { return load_machine("host-emulation"); }

// Of kernels that say what they do.
inline Trace small_step() {
  Trace step = training_step(4, MiB(32), false);
  for (Op& op : step.ops)
    if (op.kind == OpKind::kernel) {
      op.flops = 1e9;
      op.bytes = MiB(64);
    }
  return step;
}

// The optimizer's states come and go over PCIe, beside kernels of 100 and 50 ms.
inline Trace offloaded_step() {
  return offloaded(small_step(), "offload:what=optimizer,to=host,cpu_adam=0", host_like_machine());
}

inline void add_replay(const std::filesystem::path& folder, const std::string& name, Trace step, const Machine& machine,
                       double factor) {
  step.name = name;
  const std::string text = schedule_text(without_times(step));
  Execution execution = slowed(synthetic_execution(step, machine), factor);
  execution.schedule_hash = schedule_hash(text);
  write_content(folder / (name + ".schedule"), text);
  write_content(folder / (name + ".execution.csv"), execution_text(execution));
}

// Returns `folder`, which is made. Every time of the executions is `factor` times as long as predicted.
inline std::filesystem::path make_validation_folder(const std::filesystem::path& folder, double factor) {
  KnownMeasurements known(host_like_machine(), 0.01, 7);
  known.everything();
  known.both_ways(0.8, 0.9);
  write_results(known.set, folder);
  write_content(folder / "machine.textproto", calibrate(read_results(folder), {folder.filename().string(), ""}).text);
  const Machine machine = load_machine((folder / "machine.textproto").string());
  std::filesystem::create_directories(folder / "replay");
  add_replay(folder / "replay", "chain.resident", small_step(), machine, factor);
  add_replay(folder / "replay", "chain.offload", offloaded_step(), machine, factor);
  return folder;
}

}  // namespace memwall
