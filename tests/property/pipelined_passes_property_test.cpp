// Policies on random pipelines of torchtitan, whose passes are rewritten one of each kind: programs stay sound, the
// ranks still meet, nothing that a collective reads or writes goes before somebody has waited for it, and each
// micro-batch does what the others do.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <exception>
#include <string>
#include <vector>

#include "models/hw/modelled_step.h"
#include "models/hw/pricer.h"
#include "policies/trace/pipelined_passes.h"
#include "sim/engine/simulation.h"
#include "sim/error.h"
#include "sim/policy/registry.h"
#include "sim/trace/trace_check.h"
#include "tests/support/parallel_ranks.h"
#include "tests/support/races.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

template <class T>
T any_of(std::initializer_list<T> values) {
  return *rc::gen::elementOf(std::vector<T>(values));
}

struct AnyPipeline {
  Trace trace;
  std::string text;
};

AnyPipeline any_pipeline() {
  for (;;) {
    const auto p = any_of<std::int64_t>({2, 3, 4}), v = any_of<std::int64_t>({1, 1, 2, 3}),
               t = any_of<std::int64_t>({1, 2});
    Recipe r = parallel_recipe(t, p, v, any_of<std::int64_t>({2, 3, 4, 6, 8}));
    r.parallel.framework = ParallelFramework::torchtitan;
    r.parallel.sequence_parallel = t > 1;
    r.parallel.schedule = v == 1 && any_of({0, 1, 2}) == 0 ? PipelineSchedule::gpipe : PipelineSchedule::one_f_one_b;
    r.data_parallel = any_of({1u, 2u, 3u});
    r.precision = t > 1 && any_of({0, 1}) == 1 ? Precision::fp8 : Precision::bf16;
    r.attention = Attention::flash;
    r.parallel.async_tensor_parallel = t > 1 && any_of({0, 1}) == 1;
    Model m = small_gpt(p * v + any_of<std::int64_t>({0, 1, 3}));
    m.activation = Activation::swiglu, m.normalization = Normalization::rms_norm, m.positions = Positions::rotary;
    m.inner = 2 * m.width, m.key_value_heads = m.heads, m.tied_embedding = false, m.bias = false;
    const std::string text = fmt::format("t {} p {} v {} m {} D {} schedule {} precision {} async {} layers {}", t, p,
                                         v, r.accumulation, r.data_parallel, static_cast<int>(r.parallel.schedule),
                                         static_cast<int>(r.precision), r.parallel.async_tensor_parallel, m.layers);
    try {
      return {modelled_on(generate_step(m, r), test_machine()), text};
    } catch (const UsageError&) {
    }
  }
}

RC_GTEST_PROP(PipelinedPassesProperty, PoliciesLeaveASoundPipeline, ()) {
  const AnyPipeline job = any_pipeline();
  const auto policies = any_of<std::vector<std::string>>({{"compile:modules=layers.*"},
                                                          {"torchtitan:mode=full"},
                                                          {"torchtitan:mode=selective"},
                                                          {"torchtitan:mode=selective,selective_ac_option=2"},
                                                          {"torchtitan:mode=full", "compile:modules=layers.*"},
                                                          {"torchtitan:mode=selective", "compile:modules=layers.*"}});
  std::vector<PolicySpec> specs;
  for (const std::string& policy : policies) specs.push_back(parse_policy(policy));
  const Machine machine = test_machine();
  Trace trace;
  try {
    trace = apply_rewriters(job.trace, specs, machine, *make_pricer(machine));
  } catch (const std::exception& error) {
    RC_FAIL(fmt::format("{} {}: {}", job.text, fmt::join(policies, " "), error.what()));
  }
  RC_CLASSIFY(has_pipelined_passes(one_rank(job.trace, 0)), "passes follow each other");
  if (const std::vector<std::string> faults = check(trace); !faults.empty()) RC_FAIL(job.text + ": " + faults.front());
  SimulationOptions options;
  options.allocator = "ideal";
  simulate(trace, machine, options);  // throws where ranks wait for each other
  for (std::size_t i = 0; i < rank_count(trace); ++i)
    if (const auto early = early_frees(one_rank(trace, static_cast<std::uint16_t>(i)), 1); !early.empty())
      RC_FAIL(fmt::format("{} {}: {}", job.text, fmt::join(policies, " "), early.front()));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
