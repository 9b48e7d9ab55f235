// Is a profile of one batch, grafted onto a step of another, the step of that batch; and is what is no other batch
// refused?
#include "study/grafted_workload.h"

#include <gtest/gtest.h>

#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "sim/error.h"
#include "study/study.h"
#include "tests/support/profile_of.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr const char* kMachine = "a100-sxm-80gb";

Trace generated(const std::string& name) {
  return modelled_on(load_workload(name, ImportSettings{}).trace, load_machine(kMachine));
}

// What a profiler that records shapes sees of a network's step.
Workload profile_with_shapes(const std::string& name) {
  const Trace step = with_end_marks(generated(name));
  Workload profile;
  profile.trace = profile_of(step);
  profile.trace.machine = kMachine;
  auto seen = profile.trace.ops.begin();
  for (const Op& op : step.ops) {
    if (op.kind == OpKind::alloc || op.kind == OpKind::free) continue;
    seen->shape = op.shape == 0 ? 0 : profile.trace.shapes.intern(step.shapes[op.shape]);
    seen->operator_class = op.operator_class;
    seen->data_type = op.data_type;
    ++seen;
  }
  return profile;
}

SimulationResult run_of(const Trace& trace) { return simulate(trace, load_machine(kMachine), {}); }

TEST(GraftedWorkload, AProfileOfAnotherBatchBecomesTheStepOfTheOneThatIsAsked) {
  for (const char* batch : {"8", "32"}) {
    const std::string onto = std::string("resnet50:precision=fp32,batch=") + batch;
    const Workload result = grafted_workload(profile_with_shapes("resnet50:precision=fp32,batch=16"), {.onto = onto});
    const SimulationResult run = run_of(result.trace), truth = run_of(generated(onto));
    EXPECT_NEAR(to_seconds(run.end), to_seconds(truth.end), 0.05 * to_seconds(truth.end)) << batch;
    EXPECT_NEAR(static_cast<double>(run.tiers[0].peak_allocated), static_cast<double>(truth.tiers[0].peak_allocated),
                0.01 * static_cast<double>(truth.tiers[0].peak_allocated))
        << batch;
    EXPECT_TRUE(std::ranges::any_of(result.decisions,
                                    [](const Decision& d) { return d.subject == "complete step: another batch"; }));
  }
}

TEST(GraftedWorkload, ANetworkWhoseBatchNobodyStatesTakesTheProfiles) {
  const Workload result =
      grafted_workload(profile_with_shapes("resnet50:precision=fp32,batch=16"), {.onto = "resnet50:precision=fp32"});
  EXPECT_EQ(result.trace.samples_per_step, 16);
  const SimulationResult run = run_of(result.trace), truth = run_of(generated("resnet50:precision=fp32,batch=16"));
  EXPECT_NEAR(to_seconds(run.end), to_seconds(truth.end), 1e-6 * to_seconds(truth.end));
}

TEST(GraftedWorkload, WhatIsNoOtherBatchIsRefused) {
  for (const char* onto :
       {"gpt2-124m:layers=2,batch=2,sequence=512", "gpt2-124m:layers=2,batch=2,sequence=256,width=384"}) {
    ASSERT_NO_THROW(generated(onto)) << "the setting is there";
    EXPECT_THROW(grafted_workload(profile_with_shapes("gpt2-124m:layers=2,batch=2,sequence=256"), {.onto = onto}),
                 UsageError)
        << onto;
  }
  // As much work as another batch has, or as the same one.
  for (const char* onto : {"resnet50:precision=fp32,batch=16,image=112", "resnet50:precision=fp32,batch=4,image=448",
                           "resnet50:precision=fp32,batch=64,image=112"}) {
    ASSERT_NO_THROW(generated(onto));
    EXPECT_THROW(grafted_workload(profile_with_shapes("resnet50:precision=fp32,batch=16"), {.onto = onto}), UsageError)
        << onto;
  }
}

TEST(GraftedWorkload, ANetworkWithOtherLayersIsRefused) {
  EXPECT_THROW(grafted_workload(profile_with_shapes("vgg13:batch=16"), {.onto = "vgg16:batch=16"}), UsageError);
  EXPECT_THROW(grafted_workload(profile_with_shapes("vgg16:batch=16"), {.onto = "vgg13:batch=16"}), UsageError);
  EXPECT_NO_THROW(grafted_workload(profile_with_shapes("vgg13:batch=16"), {.onto = "vgg13:batch=16"}));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
