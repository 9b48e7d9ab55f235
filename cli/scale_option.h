// The option --scale: which durations are multiplied by how much.
#pragma once

#include <string>
#include <vector>

#include "sim/trace/scale.h"

namespace memwall {

// One value of the option, as given and as understood.
struct ScaleOption {
  std::string text;  // "kernels=1.1,host=0.5,rank=2"
  ScaleFactors factors;
};

// In the order given. Throws UsageError with what can be scaled.
std::vector<ScaleOption> parse_scales(const std::vector<std::string>& texts);

}  // namespace memwall
