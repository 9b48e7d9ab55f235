#include "study/complete_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "models/hw/transfer.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "policies/batch/batch_request.h"
#include "sim/error.h"
#include "sim/policy/registry.h"
#include "study/measured_machine.h"
#include "study/network_name.h"
#include "study/workload_file.h"

namespace memwall {
namespace {

// The type in which most of the time of matrix products and convolutions is spent; "" = what a network does by itself.
std::string precision_of(const Trace& profile) {
  std::map<DataType, Duration> times;
  for (const Op& op : profile.ops)
    if (op.kind == OpKind::kernel &&
        (op.operator_class == OperatorClass::gemm || op.operator_class == OperatorClass::convolution))
      times[op.data_type == DataType::tf32 ? DataType::fp32 : op.data_type] += op.duration;
  const auto most = std::ranges::max_element(times, [](const auto& a, const auto& b) { return a.second < b.second; });
  if (most == times.end()) return "";
  if (most->first == DataType::fp32) return "fp32";
  return most->first == DataType::fp16 ? "amp_fp16" : "";
}

// Programs of their own (execution: native) have one precision.
std::string with_precision(const std::string& onto, const Trace& profile) {
  const std::string precision = precision_of(profile);
  if (precision.empty() || !names_workload(onto) || onto.find("precision=") != std::string::npos) return onto;
  if (load_training_job(onto).recipe.execution == ExecutionMode::native) return onto;
  return with_setting(onto, "precision", precision);
}

Trace priced(Trace complete, const Machine& machine) {
  if (measured_nowhere(complete)) return modelled_on(std::move(complete), machine);
  if (complete.machine == machine.name) return complete;
  if (complete.machine.empty()) return transferred(std::move(complete), nullptr, machine);
  if (!has_machine(complete.machine) && !std::filesystem::is_regular_file(complete.machine))
    throw UsageError(fmt::format("{}: {}", complete.name, unknown_gpu_sentence(complete.machine, 0)));
  const Machine own = load_machine(complete.machine);
  return transferred(std::move(complete), &own, machine);
}

CompleteStep load_named(const std::string& name, const Machine& machine, Watch* watch) {
  Workload loaded = load_workload(name, ImportSettings{}, "", watch);
  return {name, priced(std::move(loaded.trace), machine), std::move(loaded.files)};
}

// Nothing where it is no whole number.
std::int64_t whole(double samples) {
  const double nearest = std::round(samples);
  return nearest >= 1 && std::abs(samples - nearest) < 1e-6 * nearest ? static_cast<std::int64_t>(nearest) : 0;
}

}  // namespace

CompleteStep load_complete_step(const std::string& onto, const Trace& profile, const Machine& machine, Watch* watch) {
  return load_named(with_precision(onto, profile), machine, watch);
}

CompleteStep at_other_batch(const CompleteStep& step, double ratio, const Machine& machine, const Pricer& pricer,
                            Watch* watch) {
  const auto refuse = [&](const std::string& found) {
    throw UsageError(
        fmt::format("{}: the profile's work is {:.4g} times as large, and {}; give the complete step at "
                    "the profile's batch.",
                    step.name, ratio, found));
  };
  if (names_workload(step.name)) {
    const std::int64_t own = static_cast<std::int64_t>(load_training_job(step.name).recipe.batch);
    const std::int64_t batch = whole(static_cast<double>(own) * ratio);
    if (batch == 0) refuse(fmt::format("that is no whole batch for one of {}", own));
    return load_named(with_setting(step.name, "batch", fmt::format("{}", batch)), machine, watch);
  }
  if (step.trace.samples_per_step <= 0) refuse("it does not say how many samples a step has");
  const std::int64_t samples = whole(step.trace.samples_per_step * ratio);
  if (samples == 0)
    refuse(fmt::format("that is no whole batch for {:g} samples per step", step.trace.samples_per_step));
  const std::string policy = batch_policy({.samples = samples});
  return {fmt::format("{} ({})", step.name, policy),
          apply_rewriters(step.trace, {parse_policy(policy)}, machine, pricer), step.files};
}

}  // namespace memwall
