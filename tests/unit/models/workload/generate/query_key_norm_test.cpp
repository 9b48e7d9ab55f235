// Are the normalized heads of Qwen 3 those that PyTorch runs?
//
// The numbers are differences of two captures on fake tensors (torch 2.15, transformers 5.23): Qwen3ForCausalLM and
// LlamaForCausalLM of 4 layers of 1024, 16 heads of 128, 8 of keys and values, an inner width of 3072 and 32,000 words,
// tied, in bf16, 2 x 1024 tokens, with AdamW.
#include <gtest/gtest.h>

#include <map>

#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "models/workload/generate/generate.h"
#include "sim/engine/simulation.h"
#include "sim/error.h"
#include "sim/trace/trace_check.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr const char* kSizes =
    ":layers=4,width=1024,heads=16,key_value_heads=8,head_size=128,inner=3072,vocabulary=32000,tied_embedding=true,"
    "batch=2,sequence=1024,shifted_logits=true,returned_logits=forward";

const Machine& machine() {
  static const Machine loaded = load_machine("h100-sxm-80gb");
  return loaded;
}

Trace step_of(const std::string& job) {
  const TrainingJob loaded = load_training_job(job);
  return modelled_on(generate_step(loaded.model, loaded.recipe), machine());
}

using Counts = std::map<std::pair<Phase, std::string>, int>;

// Kernels by phase and operator, sums of gradients under one name.
Counts kernels_beyond(const Trace& with, const Trace& without) {
  Counts counts;
  for (const auto& [trace, sign] : {std::pair{&with, 1}, {&without, -1}})
    for (const Op& op : trace->ops) {
      if (op.kind != OpKind::kernel) continue;
      std::string name = trace->strings[op.operator_name];
      if (name == "aten::add_") name = "aten::add";
      counts[{op.phase, name}] += sign;
    }
  std::erase_if(counts, [](const auto& entry) { return entry.second == 0; });
  return counts;
}

double flops_of(const Trace& trace) {
  double sum = 0;
  for (const Op& op : trace.ops) sum += op.flops;
  return sum;
}

TEST(QueryKeyNorm, AddsWhatPyTorchRuns) {
  const Trace qwen = step_of(std::string("qwen3-8b") + kSizes), llama = step_of(std::string("llama2-7b") + kSizes);
  EXPECT_EQ(check(qwen), std::vector<std::string>{});
  const Counts expected{{{Phase::forward, "aten::_to_copy"}, 16}, {{Phase::forward, "aten::add"}, 8},
                        {{Phase::forward, "aten::mean"}, 8},      {{Phase::forward, "aten::mul"}, 16},
                        {{Phase::forward, "aten::pow"}, 8},       {{Phase::forward, "aten::rsqrt"}, 8},
                        {{Phase::backward, "aten::_to_copy"}, 16}, {{Phase::backward, "aten::add"}, 8},
                        {{Phase::backward, "aten::div"}, 8},      {{Phase::backward, "aten::mul"}, 64},
                        {{Phase::backward, "aten::pow"}, 16},     {{Phase::backward, "aten::sum"}, 16}};
  EXPECT_EQ(kernels_beyond(qwen, llama), expected);
  EXPECT_EQ(flops_of(qwen) - flops_of(llama), 378478592);
  const auto peak = [](const Trace& trace) { return simulate(trace, machine(), {}).tiers[0].peak_allocated; };
  EXPECT_EQ(peak(qwen) - peak(llama), 151793664);
}

// A rank's heads are its own, the weight is everybody's: its gradient is summed, by layer 2 x 128 elements.
TEST(QueryKeyNorm, GradientsAreSummedOverTensorParallelRanks) {
  const auto sums = [](const char* name) {
    const Trace trace = step_of(std::string(name) + ":layers=2,sequence=512,tensor=4");
    double bytes = 0;
    for (const Op& op : trace.ops)
      if (op.kind == OpKind::collective && op.collective == CollectiveKind::all_reduce)
        bytes += static_cast<double>(op.bytes);
    return bytes;
  };
  // Gradients in fp32; each rank of a ring of 4 sends 2 x 3/4 of them.
  EXPECT_EQ(sums("qwen3-8b") - sums("llama3-8b"), 2 * 2 * 128 * 4 * 1.5);
}

TEST(QueryKeyNorm, RefusesLayersThatDoNotHaveIt) {
  for (const char* setting : {"execution=compiled", "rotary_in_fp32=true"}) {
    const TrainingJob job = load_training_job(std::string("qwen3-0.6b:") + setting);
    EXPECT_THROW(generate_step(job.model, job.recipe), UsageError) << setting;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
