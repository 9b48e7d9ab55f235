// What memwall says of a PyTorch variant from the capture of its baseline alone.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sim/machine/machine.h"
#include "sim/trace/shared_trace.h"

namespace memwall {

struct PytorchPrediction {
  double step = 0, forward = 0, backward = 0, optimizer = 0;  // seconds; phases as the device's span of their ops
  Bytes peak_allocated = 0, peak_reserved = 0;
};

// The policies that stand for a variant of validate/pytorch/matrix.py; nothing where no policy does yet.
std::optional<std::vector<std::string>> policies_of_variant(const std::string& variant);

// The captured step of `folder`/MODEL.kineto.json.gz (joined with MODEL.et.json.gz where that is there), as a
// trace measured on `machine`. Throws InputError.
Trace captured_baseline(const std::filesystem::path& folder, const std::string& model, const Machine& machine);

// Applies the policies and simulates. Throws UsageError where a policy cannot take the trace.
PytorchPrediction predict(const SharedTrace& baseline, const Machine& machine,
                          const std::vector<std::string>& policies);

}  // namespace memwall
