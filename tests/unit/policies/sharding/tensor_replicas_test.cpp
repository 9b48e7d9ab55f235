// Replicas of a tensor-parallel job: do policies count its ranks, groups, places and bytes as the generated job of the
// same layout has them?
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "models/hw/pricer.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "models/workload/generate/generate.h"
#include "sim/engine/simulation.h"
#include "sim/error.h"
#include "sim/machine/group_place.h"
#include "sim/policy/registry.h"
#include "sim/trace/group_names.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const Machine& machine() {
  static const Machine loaded = load_machine("dgx-a100-80gb");
  return loaded;
}

Trace step_of(const std::string& settings) {
  const TrainingJob job = load_training_job(
      "llama2-7b:layers=2,batch=1,sequence=1024,precision=bf16,master_parameters=1,parallel_framework=deepspeed," +
      settings);
  return modelled_on(generate_step(job.model, job.recipe), machine());
}

Trace replicated(const Trace& trace, const std::string& policy) {
  return apply_rewriters(trace, {parse_policy(policy)}, machine(), *make_pricer(machine()));
}

std::string refusal(const std::string& settings, const std::string& policy) {
  try {
    replicated(step_of(settings), policy);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "it was taken";
}

// Bytes that one rank sends among those that hold the same parameters.
Bytes sent_by_replicas(const Trace& t) {
  Bytes sum = 0;
  for (const Op& op : t.ops)
    if (op.kind == OpKind::collective && op.group < t.groups.size() &&
        t.groups[op.group].name.starts_with(kDataParallelGroup))
      sum += op.bytes;
  return sum;
}

TEST(TensorReplicas, StandForTheRanksOfTheGeneratedJob) {
  const Trace generated = step_of("tensor=4,data_parallel=6");
  for (const char* const policy : {"ddp:ranks=6", "deepspeed:stage=1,ranks=6", "zero:stage=2,ranks=6"}) {
    SCOPED_TRACE(policy);
    const Trace made = replicated(step_of("tensor=4"), policy);
    ASSERT_EQ(made.rank_table.size(), 1U);
    EXPECT_EQ(made.rank_table.front().stands_for, generated.rank_table.front().stands_for);
    EXPECT_EQ(made.job_ranks, generated.job_ranks);
    EXPECT_EQ(made.ranks, 1U);
    EXPECT_DOUBLE_EQ(made.samples_per_step, generated.samples_per_step);
    EXPECT_DOUBLE_EQ(made.tokens_per_step, generated.tokens_per_step);
    bool found = false;
    for (const ProcessGroup& group : made.groups) {
      if (!group.name.starts_with(kDataParallelGroup)) continue;
      found = true;
      EXPECT_EQ(group.members, (std::vector<std::uint32_t>{0, 4, 8, 12, 16, 20})) << group.name;
    }
    EXPECT_TRUE(found);
    EXPECT_NO_THROW(simulate(made, machine_of_ranks(machine(), made), {}));
  }
}

// Gradients of the rank's shares alone are summed: as many bytes as the generated job's, and a fourth of one rank's
// that holds all but the layers' norms.
TEST(TensorReplicas, SumTheGradientsOfTheirShares) {
  const Bytes generated = sent_by_replicas(step_of("tensor=4,data_parallel=6"));
  const Bytes made = sent_by_replicas(replicated(step_of("tensor=4"), "ddp:ranks=6"));
  EXPECT_NEAR(static_cast<double>(made), static_cast<double>(generated), 0.01 * static_cast<double>(generated));
}

// Groups of every fourth rank share the network's cards with the groups of the ranks between them: an all-reduce takes
// as long as the generated job's of as many bytes, and longer than among neighbours.
TEST(TensorReplicas, ArePricedInTheirPlaces) {
  const Trace made = replicated(step_of("tensor=4"), "zero:stage=1,ranks=8");
  const auto pricer = make_pricer(machine());
  int collectives = 0;
  for (const Op& op : made.ops) {
    if (op.kind != OpKind::collective || op.group >= made.groups.size()) continue;
    const ProcessGroup& group = made.groups[op.group];
    if (!group.name.starts_with(kDataParallelGroup)) continue;
    ++collectives;
    const Bytes message = pricer->message_bytes(op.collective, op.bytes, group.ranks);
    const ProcessGroup generated{std::string(kDataParallelGroup), group.ranks, group.members};
    EXPECT_EQ(op.duration, pricer->collective(op.collective, message, generated));
    if (message > MiB(64)) {
      EXPECT_GT(op.duration, pricer->collective(op.collective, message, group.ranks));
    }
  }
  EXPECT_GT(collectives, 0);
}

// `memwall inspect` says with which stage they are taken, and that they are refused where no stage takes the step.
TEST(TensorReplicas, InspectNamesTheStageThatTakesThem) {
  for (const char* const policy : {"zero", "deepspeed"}) {
    const PolicyInfo& info = policy_named(policy);
    EXPECT_EQ(info.answer(step_of("tensor=4")).setting, "stage=2");
    EXPECT_EQ(info.answer(step_of("tensor=4")).refusal, "");
    EXPECT_EQ(info.answer(step_of("tensor=1")).setting, "");
    EXPECT_NE(info.answer(step_of("tensor=2,parallel_framework=megatron")).refusal, "");
  }
}

TEST(TensorReplicas, RefusesWhatIsNoReplica) {
  EXPECT_NE(refusal("tensor=2,data_parallel=4", "ddp:ranks=4").find("has replicas already"), std::string::npos)
      << refusal("tensor=2,data_parallel=4", "ddp:ranks=4");
  EXPECT_NE(refusal("tensor=2", "zero:stage=3,ranks=4").find("to share parameters beside that is not implemented"),
            std::string::npos);
  EXPECT_NE(refusal("tensor=2", "fsdp:ranks=4").find("to share parameters beside that is not implemented"),
            std::string::npos);
  EXPECT_NE(refusal("tensor=2,parallel_framework=megatron", "deepspeed:stage=1,ranks=4").find("main_gradients=none"),
            std::string::npos);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
