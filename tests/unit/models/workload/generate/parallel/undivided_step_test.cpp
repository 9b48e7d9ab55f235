// A job of one GPU, or of data-parallel ones alone, is the step that is generated without parallelism, bit for bit; and
// what a divided generator writes of an undivided model computes the same.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/support/parallel_ranks.h"
#include "tests/support/same_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Settings that say nothing of one GPU.
TEST(UndividedStep, IsTheStepOfOneGpu) {
  for (const SmallNetwork& network : small_networks())
    for (const std::int64_t passes : {1, 3}) {
      Recipe plain, said;
      plain.accumulation = said.accumulation = passes;
      said.parallel.tensor = said.parallel.pipeline = said.parallel.interleave = 1;
      said.parallel.framework = ParallelFramework::torchtitan;
      said.parallel.rank_order = RankOrder::tensor_pipeline_data;
      const Trace one = generate_step(network.model, plain), other = generate_step(network.model, said);
      EXPECT_EQ(program_difference(one, other), "") << network.name;
      EXPECT_TRUE(other.rank_table.empty());
      EXPECT_EQ(one.ops.size(), other.ops.size());
    }
}

// `micro_batch` says what batch and accumulation do.
TEST(UndividedStep, MicroBatchesAreAccumulation) {
  Recipe plain, said;
  plain.batch = 2, plain.accumulation = 3;
  said.batch = 6, said.parallel.micro_batch = 2;
  const Model model = small_gpt(2);
  EXPECT_EQ(program_difference(generate_step(model, plain), generate_step(model, said)), "");
  said.batch = 1, said.parallel.global_batch = 12, said.data_parallel = plain.data_parallel = 2;
  EXPECT_EQ(program_difference(generate_step(model, plain), generate_step(model, said)), "");
}

// Kernels of forward and backward by name and shape, with how often they run.
std::map<std::string, int> passes_of_kernels(const Trace& t) {
  std::map<std::string, int> found;
  for (const Op& op : t.ops) {
    if (op.kind != OpKind::kernel || op.phase == Phase::optimizer) continue;
    ++found[fmt::format("{} {} {}", t.strings[op.operator_name], to_string(op.phase),
                        fmt::join(t.shapes[op.shape], "x"))];
  }
  return found;
}

// The generator of divided jobs, asked for one rank (by its main gradients): the products, attention and norms of the
// undivided step and the same activations, term by term.
TEST(UndividedStep, TheDividedGeneratorWritesTheSameLayers) {
  Model model = small_gpt(3);
  model.vocabulary = 256;  // padded to itself
  Recipe plain;
  plain.optimizer = OptimizerKind::adam;
  plain.accumulation = 2;
  Recipe divided = plain;
  divided.parallel.main_gradients = MainGradients::fp32;
  const Trace whole = generate_step(model, plain), rank = generated_ranks(model, divided).front();
  const auto layers = [](const Trace& t) {
    std::vector<KeptTensor> kept = kept_before(t, first_backward(t));
    std::erase_if(kept, [](const KeptTensor& one) { return !starts_with(one.module, "layers.1"); });
    for (KeptTensor& one : kept) one.label.clear();  // a bias is added by a kernel of its own
    std::sort(kept.begin(), kept.end());
    return kept;
  };
  EXPECT_EQ(layers(whole), layers(rank));
  double flops = 0, of_rank = 0;
  for (const Op& op : whole.ops)
    if (op.operator_class == OperatorClass::gemm || op.operator_class == OperatorClass::attention) flops += op.flops;
  for (const Op& op : rank.ops)
    if (op.operator_class == OperatorClass::gemm || op.operator_class == OperatorClass::attention) of_rank += op.flops;
  EXPECT_EQ(flops, of_rank);
  const std::map<std::string, int> one = passes_of_kernels(whole), other = passes_of_kernels(rank);
  for (const auto& [kernel, count] : one) {
    if (kernel.find("native_layer_norm") == std::string::npos && kernel.find("flash") == std::string::npos) continue;
    ASSERT_TRUE(other.contains(kernel)) << kernel;
    EXPECT_EQ(other.at(kernel), count) << kernel;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
