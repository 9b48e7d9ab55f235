// Settings of a training framework that carry out a memory plan.
#pragma once

#include <string>
#include <vector>

#include "traces/emit/emission.h"
#include "traces/plan/plan_document.h"

namespace memwall {

// "deepspeed", "torchtitan-0.2.2", ...
std::vector<std::string> emitted_frameworks();

struct EmitSettings {
  std::string framework;
  std::string plan;              // the file's name, for texts that load it
  std::string gradient_dtype{};  // "bf16", "fp16" or "fp32", where the file does not say; "" = as it says
};

// A pure function. Throws UsageError for an unknown framework or type, naming what is known.
Emission emit(const PlanDocument& document, const EmitSettings& settings);

}  // namespace memwall
