// FSDP2 under torchtitan's pipeline: one gather and one scatter of each group in a step, whatever the micro-batches,
// and 6 + 16 / d bytes for each parameter (../shared/spec/parallelism.md, 7.1 and G14).
#include "models/workload/generate/parallel/sharded_parameters.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "models/hw/modelled_step.h"
#include "sim/engine/simulation.h"
#include "sim/error.h"
#include "sim/trace/trace_check.h"
#include "tests/support/live_bytes.h"
#include "tests/support/parallel_ranks.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Model untied(std::int64_t layers) {
  Model m = small_gpt(layers);
  m.tied_embedding = false;
  m.vocabulary = 256;
  return m;
}

Recipe fsdp_recipe(std::int64_t tensor, std::int64_t passes, std::uint32_t data) {
  Recipe r = parallel_recipe(tensor, 2, 1, passes);
  r.parallel.framework = ParallelFramework::torchtitan;
  r.parallel.sequence_parallel = tensor > 1;
  r.data_parallel = data;
  return r;
}

// Of a rank without data parallelism.
Bytes parameters_of_stage(const Model& model, const Recipe& given, std::size_t stage) {
  Recipe alone = given;
  alone.data_parallel = 1;
  return preexisting_bytes(generated_ranks(model, alone)[stage], StorageKind::parameter) / 2;
}

TEST(ShardedParameters, EachIsGatheredAndScatteredOnce) {
  const Model model = untied(6);
  for (const std::int64_t tensor : {1, 2})
    for (const std::int64_t passes : {2, 5}) {
      const Recipe recipe = fsdp_recipe(tensor, passes, 4);
      const std::vector<Trace> ranks = generated_ranks(model, recipe);
      for (std::size_t stage = 0; stage < 2; ++stage) {
        const Bytes elements = parameters_of_stage(model, recipe, stage);  // 4 divides every first dimension
        std::map<CollectiveKind, Bytes> sent;
        std::map<CollectiveKind, std::size_t> count;
        for (const Op& op : collectives_of(ranks[stage], "data parallel")) {
          sent[op.collective] += op.bytes;
          ++count[op.collective];
        }
        EXPECT_EQ(sent.size(), 2u);
        EXPECT_EQ(sent[CollectiveKind::all_gather], 2 * elements / 4 * 3);
        EXPECT_EQ(sent[CollectiveKind::reduce_scatter], 4 * elements / 4 * 3);
        EXPECT_EQ(count[CollectiveKind::all_gather], 3u + 1) << "three layers, and the embedding or the output";
        EXPECT_EQ(count[CollectiveKind::reduce_scatter], 3u + 1);
      }
    }
}

TEST(ShardedParameters, BytesPerParameter) {
  const Model model = untied(6);
  for (const std::uint32_t data : {2u, 4u, 8u}) {
    const Recipe recipe = fsdp_recipe(1, 4, data);
    const Trace rank = generated_ranks(model, recipe)[1];
    const Bytes elements = parameters_of_stage(model, recipe, 1);
    EXPECT_EQ(preexisting_bytes(rank, StorageKind::parameter), 4 * elements / data);
    EXPECT_EQ(preexisting_bytes(rank, StorageKind::optimizer_state), 8 * elements / data);
    EXPECT_EQ(preexisting_bytes(rank, StorageKind::gradient), 0);
    Bytes parameters = 0, gradients = 0, together = 0;
    for (const LiveBytes& live : live_bytes(rank)) {
      parameters = std::max(parameters, of(live, StorageKind::parameter));
      gradients = std::max(gradients, of(live, StorageKind::gradient));
      together = std::max(together, model_state(live));
    }
    EXPECT_EQ(parameters, 2 * elements + 4 * elements / data) << "whole in 16 bits beside this rank's share";
    EXPECT_EQ(gradients, 4 * elements) << "whole in fp32, until they are scattered";
    EXPECT_GE(together, 6 * elements + 12 * elements / data);
    EXPECT_LE(together, 6 * elements + 16 * elements / data);
  }
  EXPECT_EQ((6 + 16 / 8) * Bytes{1'000'000'000}, 8'000'000'000) << "G14";
}

// Parameters are whole from the first forward pass to the last backward pass alone.
TEST(ShardedParameters, AreWholeWhileTheyAreUsed) {
  const Trace rank = generated_ranks(untied(6), fsdp_recipe(1, 4, 4))[0];
  const std::vector<LiveBytes> live = live_bytes(rank);
  const Bytes shares = preexisting_bytes(rank, StorageKind::parameter);
  for (std::size_t i = 0; i < rank.ops.size(); ++i)
    if (rank.ops[i].phase == Phase::optimizer && rank.ops[i].kind == OpKind::kernel) {
      EXPECT_EQ(of(live[i], StorageKind::parameter), shares);
      EXPECT_EQ(of(live[i], StorageKind::gradient), shares) << "a share of each, in fp32";
    }
  EXPECT_EQ(model_state(live.back()), model_state(live.front())) << "a step leaves what it found";
}

TEST(ShardedParameters, StepsRun) {
  for (const std::int64_t tensor : {1, 2})
    for (const std::int64_t passes : {2, 4}) {
      const Trace job = generate_step(untied(6), fsdp_recipe(tensor, passes, 4));
      ASSERT_EQ(check(job), std::vector<std::string>{});
      SimulationOptions options;
      options.allocator = "ideal";
      EXPECT_GT(simulate(modelled_on(job, test_machine()), test_machine(), options).gpu_span, Duration{});
    }
}

// Two stages on each rank: both are gathered before the first pass, each is scattered behind its own last backward
// pass. By hand: all whole parameters in 16 bits and all gradients in fp32 live together, until the later stage's go.
TEST(ShardedParameters, StagesOfOneRankAreWholeTogether) {
  const Model model = untied(8);
  Recipe recipe = fsdp_recipe(1, 4, 4);
  recipe.parallel.interleave = 2;
  recipe.parallel.stage_layout = "Et|t*3|t*2|t*2L";
  for (std::size_t stage = 0; stage < 2; ++stage) {
    const Trace rank = generated_ranks(model, recipe)[stage];
    const Bytes elements = parameters_of_stage(model, recipe, stage);
    EXPECT_EQ(preexisting_bytes(rank, StorageKind::parameter), 4 * elements / 4);
    EXPECT_EQ(preexisting_bytes(rank, StorageKind::optimizer_state), 8 * elements / 4);
    Bytes parameters = 0, gradients = 0;
    for (const LiveBytes& live : live_bytes(rank)) {
      parameters = std::max(parameters, of(live, StorageKind::parameter));
      gradients = std::max(gradients, of(live, StorageKind::gradient));
    }
    EXPECT_EQ(parameters, 2 * elements + 4 * elements / 4);
    EXPECT_EQ(gradients, 4 * elements);
    // Receive buffers for all micro-batches: two of each stage, but for the first and the last of the pipeline.
    const Bytes message = 2 * recipe.batch * model.longest * model.width;
    EXPECT_EQ(preexisting_bytes(rank, StorageKind::communication_buffer), 3 * 4 * message);
  }
  recipe.parallel.interleave = 4;
  recipe.parallel.stage_layout.clear();
  EXPECT_THROW(generate_step(model, recipe), UsageError) << "torch shards some stages again between passes";
  recipe.data_parallel = 1;
  EXPECT_NO_THROW(generate_step(model, recipe));
}

TEST(ShardedParameters, WithoutAPipelineIsRefused) {
  Recipe recipe = fsdp_recipe(2, 2, 4);
  recipe.parallel.pipeline = 1;
  try {
    generate_step(untied(6), recipe);
    ADD_FAILURE() << "taken";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("--policy fsdp:ranks=4,reduce_dtype=fp32, or pipeline 2 or more"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
