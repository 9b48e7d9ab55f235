// Does a profile joined with its ExecutionTrace know no less than the ExecutionTrace alone, and take the policies that
// need dataflow and lifetimes?
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/error.h"
#include "sim/trace/derived_lives.h"
#include "study/study.h"
#include "tests/support/shared_data.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct Pair {
  std::string name, profile, execution_trace;
  bool lives_recorded = false;  // by memory events
};

std::vector<Pair> pairs() {
  const auto data = shared_data();
  if (!data) return {};
  const std::string traces = (*data / "traces").string();
  std::vector<Pair> all{{"VGG-13", traces + "/kineto/vgg13_h100_bs512_train.json",
                         traces + "/execution_trace/vgg13_h100_bs512.json", true},
                        {"linear layers", traces + "/kineto/linear_2080ti.json.gz",
                         traces + "/execution_trace/linear_2080ti.json.gz", false}};
  for (const char* rank : {"0", "1", "2", "3"}) {
    const std::string file = traces + "/dlrm_8xv100/rank" + rank;
    all.push_back({std::string("DLRM, rank ") + rank, file + ".kineto.json.gz", file + ".et.json.gz", false});
  }
  return all;
}

class JoinedCaptures : public testing::Test {
 protected:
  void SetUp() override {
    if (!shared_data()) GTEST_SKIP() << "MEMWALL_SHARED names no folder with captures";
  }
  SimulationResult run(const Pair& pair, const std::string& policy = "") {
    Scenario scenario{.step = {pair.profile}, .execution_traces = {pair.execution_trace}};
    if (!policy.empty()) scenario.policies = {policy};
    return study_.run(scenario, {.record = false}).run.result;
  }
  Study study_;
};

TEST_F(JoinedCaptures, KnowNoLessThanTheExecutionTraceAlone) {
  for (const Pair& pair : pairs()) {
    SCOPED_TRACE(pair.name);
    const LoadedStep alone = study_.load({.step = {pair.execution_trace}, .machine = "v100-sxm2-32gb"});
    const LoadedStep joined = study_.load({.step = {pair.profile}, .execution_traces = {pair.execution_trace}});
    const Knowledge &less = alone.trace->knowledge, &more = joined.trace->knowledge;
    EXPECT_TRUE(more.timing);
    EXPECT_GE(more.dataflow, less.dataflow);
    EXPECT_GE(more.allocations, less.allocations);
    EXPECT_GE(more.modules, less.modules);
    EXPECT_GE(more.shapes, less.shapes);
    EXPECT_TRUE(more.dataflow && more.allocations && more.shapes);
    EXPECT_EQ(has_derived_lives(*joined.trace), !pair.lives_recorded);
  }
}

// A budget that is not kept is told, with the plan that comes nearest.
TEST_F(JoinedCaptures, TakeThePoliciesThatNeedDataflow) {
  for (const Pair& pair : pairs()) {
    SCOPED_TRACE(pair.name);
    const SimulationResult own = run(pair);
    EXPECT_GT(own.tiers[0].peak_allocated, 0);
    for (const char* policy :
         {"checkpoint", "offload:what=activations,min_bytes=0", "zero:stage=1,ranks=8", "plan:budget=37GiB,search=0"}) {
      SCOPED_TRACE(policy);
      const SimulationResult with = run(pair, policy);
      EXPECT_GT(with.tiers[0].peak_allocated, 0);
      EXPECT_LE(with.tiers[0].peak_allocated, own.tiers[0].peak_allocated + MiB(64));
    }
  }
}

// Each of its steps zeroes gradients in place: policies that make them anew say so, the others take it. What a rank
// keeps is of one step, and no more gradients than parameters.
TEST_F(JoinedCaptures, GradientsThatAreZeroedInPlaceAreRefusedWhereTheyAreMadeAnew) {
  const Pair linear = pairs()[1];
  for (const char* policy : {"deepspeed:stage=1,ranks=8", "deepspeed:stage=2,ranks=8", "megatron_optimizer:ranks=8"}) {
    try {
      run(linear, policy);
      ADD_FAILURE() << policy << " is taken";
    } catch (const UsageError& refused) {
      EXPECT_NE(std::string(refused.what()).find("zeroes a gradient in place"), std::string::npos) << refused.what();
    }
  }
  EXPECT_GT(run(linear, "ddp:ranks=8").end.count(), 0);
  const PreparedStep sharded = study_.prepare(
      {.step = {linear.profile}, .execution_traces = {linear.execution_trace}, .policies = {"zero:stage=1,ranks=8"}});
  EXPECT_TRUE(std::ranges::any_of(sharded.trace->notes, [](const std::string& note) {
    return note.find("90.37 MB of 90.37 MB of gradients") != note.npos;
  }));
}

// Its ExecutionTrace holds one of forty iterations, and stands for each.
TEST_F(JoinedCaptures, OneIterationOfManyStandsForEach) {
  const Pair linear = pairs()[1];
  const LoadedStep joined = study_.load({.step = {linear.profile}, .execution_traces = {linear.execution_trace}});
  EXPECT_EQ(joined.trace->steps.size(), 40u);
  const SimulationResult alone = study_.run({.step = {linear.profile}}, {.record = false}).run.result;
  EXPECT_NEAR(to_seconds(run(linear).end), to_seconds(alone.end), 1e-3 * to_seconds(alone.end)) << "times are the same";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
