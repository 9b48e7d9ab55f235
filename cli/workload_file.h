// Whatever a user calls "the step": a trace file or a capture, told apart by content.
//
// Known: memwall's own traces (.mwt), captured steps (.mwc, plain or gzip), captured CUDA programs (.mwi), Kineto
// captures (.json, .json.gz; with an ExecutionTrace of the same run beside them or not), G10 workloads (X.kernels.csv,
// X.tensors.csv beside it), and steps that are generated: a known workload's name, a .textproto, a config.json.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/trace.h"

namespace memwall {

enum class WorkloadKind : std::uint8_t { trace, kineto, g10, capture, inject, generated };
std::string_view to_string(WorkloadKind kind);

// What the file is; a name that is no file's may be a workload's. Throws InputError naming what was found, and what to
// do with a file that is known but not a step (an ExecutionTrace, a run file, G10's tensors).
WorkloadKind kind_of_workload(const std::filesystem::path& path);

struct Workload {
  WorkloadKind kind = WorkloadKind::trace;
  Trace trace;                               // sound
  std::vector<std::string> report;           // what the file holds; what was concluded stands in trace.notes
  std::vector<std::filesystem::path> files;  // that were read
};

// `execution_trace` and `step_range` (the name of the NVTX ranges around steps) may be empty. Throws InputError, and
// UsageError for an ExecutionTrace beside anything but a Kineto capture, or a step range for anything but a captured
// CUDA program.
Workload load_workload(const std::filesystem::path& path, const std::filesystem::path& execution_trace,
                       const std::string& step_range = "");

// "crc32:0a1b2c3d" of the file's bytes. Throws InputError.
std::string hash_of_file(const std::filesystem::path& path);

}  // namespace memwall
