// A step that is generated from a workload's name or file, and what is in it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

// Bytes on the device.
struct GeneratedFigures {
  std::int64_t parameters = 0, active_parameters = 0;  // active: those that one token meets; fewer with experts
  double flops = 0;
  Bytes parameter_bytes = 0, gradient_bytes = 0, optimizer_bytes = 0;  // gradients: all that the step makes or keeps
  Bytes activation_bytes = 0;  // alive where backward begins for the first time, inputs not counted
  Bytes peak_bytes = 0;
  std::uint64_t operators = 0, framework_calls = 0;
};

struct GeneratedStep {
  Trace trace;  // sound
  GeneratedFigures figures;
  std::vector<std::filesystem::path> files;  // that were read
};

// `what` as load_training_job takes it. Throws its errors, UsageError for settings, and those of generate_step.
GeneratedStep generated_step(const std::string& what, const std::vector<std::string>& settings);

}  // namespace memwall
