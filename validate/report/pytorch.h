// The PyTorch rungs: variants of real models, predicted from the capture of their baseline, against what
// validate/pytorch/matrix.py measured.
//
// The baseline is captured under a profiler, which slows the host; variants are measured without one. So the
// step time of the baseline stands among the rows too, and beside every absolute there is the ratio to it.
#pragma once

#include <filesystem>
#include <vector>

#include "sim/machine/machine.h"
#include "validate/report/pytorch_cases.h"
#include "validate/report/pytorch_prediction.h"
#include "validate/report/validation.h"

namespace memwall {

// Aims, as relative errors: same kernels: median 5 %, 90th percentile 10 %, peak 2 %; changed kernels: median 15 %.
// They are the project's own; a further row asks for every pair of variants in the right order.
struct PytorchAims {
  double same_median = 0.05, same_p90 = 0.10, same_peak = 0.02, changed_median = 0.15;
};

// Rows of `folder`/pytorch on the machine `folder`/machine.textproto; where nothing was measured, one row
// "not measured yet" per aim.
std::vector<ValidationRow> validate_pytorch(const std::filesystem::path& folder, const ValidationSettings& settings);

// One measured variant with what memwall says of it.
struct PytorchComparison {
  PytorchCase measured;
  PytorchPrediction predicted;
};
// The rows of one machine: each comparison's figures (reported), then a row per aim (within or outside). An aim
// without a single comparison is "not measured yet".
std::vector<ValidationRow> pytorch_rows(const std::string& machine, const std::vector<PytorchComparison>& comparisons);

}  // namespace memwall
