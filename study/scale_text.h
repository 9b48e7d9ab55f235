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

// Several as one for each rank, and one for all: given twice, a factor counts twice, and what one says of collectives
// holds for the others, as if all stood in one text. In the order in which ranks are first named.
std::vector<ScaleFactors> combined(const std::vector<ScaleOption>& scales);

// What each factor covers: "kernels x 1.1 (kernels and memsets, ...)".
std::string coverage_text(const ScaleFactors& factors);

}  // namespace memwall
