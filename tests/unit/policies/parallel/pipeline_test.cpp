// Is a step that is cut into stages the step of a pipeline: who holds what, what crosses, in which order passes run, how
// long the bubble is?
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "models/hw/pricer.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "models/workload/generate/generate.h"
#include "sim/engine/simulation.h"
#include "sim/error.h"
#include "sim/policy/registry.h"
#include "sim/trace/ranks.h"
#include "sim/trace/trace_check.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const Machine& machine() {
  static const Machine loaded = load_machine("dgx-a100-80gb");
  return loaded;
}

Trace step_of(const std::string& job) {
  const TrainingJob loaded = load_training_job(job);
  return modelled_on(generate_step(loaded.model, loaded.recipe), machine());
}

Trace rewritten(const Trace& trace, const std::vector<std::string>& policies) {
  std::vector<PolicySpec> specs;
  for (const std::string& p : policies) specs.push_back(parse_policy(p));
  return apply_rewriters(trace, specs, machine(), *make_pricer(machine()));
}

SimulationResult simulated(const Trace& trace) {
  SimulationOptions options;
  options.allocator = "ideal";
  return simulate(trace, machine(), options);
}

// Blocks take nearly all of the time, and all alike.
constexpr const char* kEven =
    "gpt3-175b:layers=8,width=4096,heads=32,vocabulary=256,sequence=2048,tied_embedding=false,optimizer=none";

Bytes parameters_of(const Trace& t) {
  Bytes sum = 0;
  for (const Storage& s : t.storages)
    if (s.kind == StorageKind::parameter && s.preexisting) sum += s.bytes;
  return sum;
}

double flops_of(const Trace& t) {
  double sum = 0;
  for (const Op& op : t.ops) sum += op.flops;
  return sum;
}

TEST(PipelinePolicy, StagesTogetherAreTheStep) {
  const Trace one = rewritten(step_of(std::string(kEven) + ",optimizer=adamw"), {"accumulate:6"});
  for (const char* const schedule : {"1f1b", "gpipe"}) {
    const Trace job = rewritten(one, {std::string("pipeline:stages=4,schedule=") + schedule});
    EXPECT_EQ(check(job), std::vector<std::string>{});
    ASSERT_EQ(rank_count(job), 4u);
    EXPECT_EQ(parameters_of(job), parameters_of(one));
    EXPECT_NEAR(flops_of(job), flops_of(one), 1e-9 * flops_of(one));
    EXPECT_EQ(job.samples_per_step, one.samples_per_step);
  }
}

// m messages each way over each of p - 1 borders, of 2 s b h bytes; each has one who sends and one who receives.
TEST(PipelinePolicy, NeighboursExchangeAMessageForEachPass) {
  const Trace job = rewritten(step_of(kEven), {"accumulate:5", "pipeline:stages=4"});
  std::map<std::uint32_t, std::vector<Bytes>> meetings;
  for (const Op& op : job.ops)
    if (op.kind == OpKind::collective && op.collective == CollectiveKind::send_receive)
      meetings[op.target].push_back(op.bytes);
  EXPECT_EQ(meetings.size(), 2u * 3 * 5);
  for (auto& [number, bytes] : meetings) {
    std::sort(bytes.begin(), bytes.end());
    EXPECT_EQ(bytes, (std::vector<Bytes>{0, Bytes{2} * 2048 * 4096})) << number;
  }
}

// (m + p - 1) of what a stage takes for one micro-batch, where stages are equal: by both schedules.
TEST(PipelinePolicy, TheBubbleIsThatOfTheFormula) {
  const Trace one = step_of(kEven);
  for (const int m : {4, 8, 16}) {
    const std::string passes = "accumulate:" + std::to_string(m);
    const double pass = to_seconds(simulated(rewritten(one, {passes})).end) / m;
    for (const char* const schedule : {"1f1b", "gpipe"}) {
      const Trace job = rewritten(one, {passes, std::string("pipeline:stages=4,schedule=") + schedule});
      EXPECT_NEAR(to_seconds(simulated(job).end), (m + 3) * pass / 4, 0.02 * (m + 3) * pass / 4) << m << " " << schedule;
    }
  }
}

// The most that activations of one rank take at once, in the order of its program.
Bytes most_activations(const Trace& job, std::uint16_t rank) {
  const Trace program = one_rank(job, rank);
  Bytes now = 0, most = 0;
  for (const Op& op : program.ops) {
    if ((op.kind != OpKind::alloc && op.kind != OpKind::free) ||
        program.storages[op.target].kind != StorageKind::activation)
      continue;
    now += op.kind == OpKind::alloc ? program.storages[op.target].bytes : -program.storages[op.target].bytes;
    most = std::max(most, now);
  }
  return most;
}

// 1F1B holds min(p - i, m) passes on rank i, GPipe all m.
TEST(PipelinePolicy, HoldsAsManyPassesAsTheScheduleSays) {
  const Trace one = rewritten(step_of(kEven), {"accumulate:8"});
  const Trace alternate = rewritten(one, {"pipeline:stages=4"}), whole = rewritten(one, {"pipeline:stages=4,schedule=gpipe"});
  for (std::uint16_t i = 0; i < 3; ++i) {
    const double of_one = static_cast<double>(most_activations(whole, i)) / 8;
    EXPECT_NEAR(static_cast<double>(most_activations(alternate, i)) / of_one, 4 - i, 0.2) << i;
  }
}

TEST(PipelinePolicy, ComposesWithTensor) {
  const Trace job = rewritten(step_of(kEven), {"accumulate:4", "tensor:ranks=2", "pipeline:stages=4"});
  EXPECT_EQ(check(job), std::vector<std::string>{});
  EXPECT_EQ(job.job_ranks, 8u);
  ASSERT_EQ(job.rank_table.size(), 4u);
  for (std::uint32_t s = 0; s < 4; ++s) {
    EXPECT_EQ(job.rank_table[s].number, 2 * s);
    EXPECT_EQ(job.rank_table[s].stands_for, std::vector<std::uint32_t>{2 * s + 1});
  }
  EXPECT_GT(simulated(job).end, Duration{});
}

// A message that nobody sends is waited for for ever, and that is told.
// Policies behind the pipeline rewrite each stage by itself, whether they are given with it or to what it has made.
TEST(PipelinePolicy, IsRewrittenStageByStage) {
  const Trace one = rewritten(step_of(std::string(kEven) + ",optimizer=adamw"), {"accumulate:4"});
  const std::vector<std::string> behind{"offload:what=optimizer,to=host", "offload:what=activations,to=host"};
  const Trace pipeline = rewritten(one, {"pipeline:stages=2"});
  for (const std::string& policy : behind) {
    const Trace together = rewritten(one, {"pipeline:stages=2", policy}), apart = rewritten(pipeline, {policy});
    EXPECT_EQ(check(together), std::vector<std::string>{}) << policy;
    ASSERT_EQ(together.ops.size(), apart.ops.size()) << policy;
    ASSERT_GT(together.ops.size(), pipeline.ops.size()) << policy;
    for (OpId id = 0; id < together.ops.size(); ++id) {
      EXPECT_EQ(together.ops[id].kind, apart.ops[id].kind) << policy << ", op " << id;
      EXPECT_EQ(together.ops[id].stream, apart.ops[id].stream) << policy << ", op " << id;
    }
  }
}

TEST(PipelinePolicy, AMissingMessageIsFound) {
  Trace job = rewritten(step_of(kEven), {"accumulate:4", "pipeline:stages=2"});
  const auto sent = std::find_if(job.ops.begin(), job.ops.end(), [](const Op& op) { return op.kind == OpKind::collective; });
  ASSERT_NE(sent, job.ops.end());
  const std::uint32_t number = sent->target;
  const auto received = std::find_if(sent + 1, job.ops.end(), [&](const Op& op) {
    return op.kind == OpKind::collective && op.target == number;
  });
  ASSERT_NE(received, job.ops.end());
  sent->target = 4000;
  received->target = 4000;
  EXPECT_NO_THROW(simulated(job));
  const auto other = std::find_if(received + 1, job.ops.end(), [](const Op& op) { return op.kind == OpKind::collective; });
  ASSERT_NE(other, job.ops.end());
  std::swap(received->target, other->target);
  EXPECT_THROW(simulated(job), InputError);
}

TEST(PipelinePolicy, RefusesWhatCannotBeCut) {
  EXPECT_THROW(rewritten(step_of(kEven), {"pipeline:stages=2"}), UsageError);  // one pass
  EXPECT_THROW(rewritten(step_of(kEven), {"accumulate:4", "pipeline:stages=9"}), UsageError);
  EXPECT_THROW(rewritten(step_of("gpt2-124m:layers=4"), {"accumulate:4", "pipeline:stages=2"}), UsageError);  // tied
  EXPECT_THROW(rewritten(step_of(std::string(kEven) + ",data_parallel=2"), {"pipeline:stages=2"}), UsageError);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
