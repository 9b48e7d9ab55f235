// The size of the step that a policy of the kind batch asks for, as values: whoever finds that size in another way
// (between two captures, by search) asks here and need not know the policy's parameters.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/policy/registry.h"

namespace memwall {

struct BatchRequest {
  std::int64_t samples = 0;   // per step; 0 = not asked
  std::int64_t captured = 0;  // samples per step of the capture; 0 = what the trace says
  std::int64_t tokens = 0;    // per step: another length; 0 = not asked
};

std::vector<ParameterInfo> batch_parameters();

BatchRequest batch_request(const PolicyArguments& arguments);
// Of any policy: nothing where it does not set the batch.
std::optional<BatchRequest> batch_request(const PolicySpec& spec);

// The text of the policy that asks for it: "batch:16", "batch:tokens=8192", "batch:16,from=4".
std::string batch_policy(const BatchRequest& request);

}  // namespace memwall
