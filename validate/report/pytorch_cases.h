// What validate/pytorch/matrix.py measured: one row per model and variant.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/units.h"

namespace memwall {

struct PytorchCase {
  std::string model, variant;
  bool same_kernels = true;  // as the baseline's; else dtype, batch or compile changed them
  std::string status;        // "measured", "out_of_memory", "no_time", "failed"
  std::string date;
  // Seconds of one step without a profiler (median), and of its phases. 0 unless measured.
  double step = 0, forward = 0, backward = 0, optimizer = 0;
  Bytes peak_allocated = 0, peak_reserved = 0;
  bool measured() const { return status == "measured"; }
};

// Reads results.csv. Throws InputError "FILE:LINE: found, expected": another header, a figure that is no
// number or negative, a measured row without a step time, the same case measured twice.
std::vector<PytorchCase> read_pytorch_cases(const std::filesystem::path& path);

}  // namespace memwall
