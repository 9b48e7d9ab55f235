// Which durations of a step are multiplied by how much, as text: "kernels=1.1,host=0.5,rank=2".
#pragma once

#include <string>
#include <vector>

#include "sim/trace/scale.h"

namespace memwall {

// One such text, as given and as understood.
struct ScaleOption {
  std::string text;  // "kernels=1.1,host=0.5,rank=2"
  ScaleFactors factors;
};

// In the order given. Throws UsageError with what can be scaled.
std::vector<ScaleOption> parse_scales(const std::vector<std::string>& texts);

}  // namespace memwall
