// Captured steps (.mwc, traces/capture/FORMAT.md): the host program of a training step, recorded
// operator by operator with or without a GPU.
//
// What becomes what:
// - an `op` that launches kernels: one kernel op on its stream, which knows how many it launches; its
//   reads and writes are uses, an in-place operator both. What it reads of a storage that nobody has
//   written yet, and that it writes itself, is no read (zero_() on a fresh tensor);
// - an `op` without kernels: host work if it uses host memory, else nothing (a view). Its dispatch counts
//   among the framework's calls for the thread's next op;
// - `inputs` and `outputs`: the shape of an op's work by its class, and those of the storages
//   (work_shape.h);
// - a `copy`: a copy op; its host side is page-locked where the place is host_pinned;
// - a `collective`: a collective op; its bytes become those that one rank sends in a ring;
// - threads: one after the other. Where the thread changes, the new one goes on when the record
//   before has ended on the host: a hand-over, marked as inferred;
// - alloc and free without a phase: an alloc has that of the thread's next op, a free that of the last;
// - `step` and `loss`: marks. A file without `step` is one step.
//
// With fake tensors nothing was measured: durations and host times are zero, origins modelled, and
// the trace knows no timing until models/hw prices it for a machine. What a storage's allocation,
// use or free gets wrong is an InputError that names the line.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/workload/import/bytes/file_head.h"
#include "models/workload/import/timed/imported_step.h"
#include "sim/trace/trace.h"

namespace memwall {

struct ImportedMwc {
  Trace trace;                      // sound; its machine is "" until somebody finds the GPU's
  bool measured = false;            // some op has a duration of its own
  std::string gpu;                  // the device's own name, "" if unknown
  Bytes gpu_bytes = 0;              // 0 = unknown
  std::vector<std::string> report;  // what the file holds
  NoteKinds note_kinds;             // of the trace's notes
  std::vector<Decision> decisions;  // what was concluded
};

// Throws InputError (file, line, found, expected).
ImportedMwc read_mwc(const std::filesystem::path& path);

bool recognizes_mwc(const FileHead& head);
ImportedStep import_mwc(const std::filesystem::path& path, const ImportSettings& settings);

}  // namespace memwall
