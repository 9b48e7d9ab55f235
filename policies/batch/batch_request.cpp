#include "policies/batch/batch_request.h"

#include <fmt/format.h>

namespace memwall {

std::vector<ParameterInfo> batch_parameters() {
  constexpr ParameterRange kSizes{1, 1'000'000'000'000};
  return {integer("to", Unset{"0"}, kSizes, "samples",
                  "per step, all forward passes of the step together; its name may be left out: batch:16."),
          integer("from", Unset{"0"}, kSizes, "samples", "per step of the capture; 0: what the trace says."),
          integer("tokens", Unset{"0"}, kSizes, "tokens",
                  "per step: another length at the same number of samples. Needs a capture at a second size "
                  "(--second-size).")};
}

BatchRequest batch_request(const PolicyArguments& arguments) {
  return {.samples = arguments.integer_or("to", 0),
          .captured = arguments.integer_or("from", 0),
          .tokens = arguments.integer_or("tokens", 0)};
}

std::optional<BatchRequest> batch_request(const PolicySpec& spec) {
  if (spec.info->kind != PolicyKind::batch) return std::nullopt;
  return batch_request(spec.arguments);
}

std::string batch_policy(const BatchRequest& request) {
  std::string settings;
  if (request.samples > 0) settings = fmt::format("{}", request.samples);
  if (request.captured > 0) settings += fmt::format("{}from={}", settings.empty() ? "" : ",", request.captured);
  if (request.tokens > 0) settings += fmt::format("{}tokens={}", settings.empty() ? "" : ",", request.tokens);
  return policy_of(PolicyKind::batch).name + ":" + settings;
}

}  // namespace memwall
