// Reads the Chrome trace that torch.profiler writes by Kineto, 2021 to now.
//
// Source of the format: pytorch/kineto, libkineto/src/output_json.cpp, and torch/csrc/profiler/kineto_shim.cpp, by the
// files of several vintages.
#pragma once

#include <filesystem>

#include "models/workload/import/timed/timed_capture.h"

namespace memwall {

// Reads a Kineto file, .json or .json.gz (told by content), of any size: it is streamed, and only what TimedCapture
// lists is kept. Throws InputError naming file, byte, what was found and expected.
TimedCapture read_kineto(const std::filesystem::path& path);

}  // namespace memwall
