// Does a policy make of the plain step what PyTorch ran under torch.utils.checkpoint, or with an offload? Captures of
// both, on fake tensors (traces/samples/captures/planned/make_planned.py): the same kernels in the same order, the same
// bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "models/hw/pricer.h"
#include "models/workload/import/mwc/mwc_import.h"
#include "policies/plan/plan_realization.h"
#include "sim/policy/registry.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/step_memory.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct PlannedCase {
  const char* name;  // of the capture
  const char* policy;
};

void PrintTo(const PlannedCase& c, std::ostream* out) { *out << c.name; }

struct LiveKernel {
  std::string name;  // "recompute aten::addmm"
  Bytes live = 0;    // on the device, when it is called
  friend bool operator==(const LiveKernel&, const LiveKernel&) = default;
};

std::vector<LiveKernel> kernels(const StepMemory& step) {
  std::vector<LiveKernel> all;
  for (const StepKernel& kernel : step.kernels) all.push_back({text_of(kernel), total(kernel.live)});
  return all;
}

std::vector<LiveKernel> kernels(const Trace& trace) { return kernels(step_memory(trace)); }

Bytes peak(const std::vector<LiveKernel>& all) {
  Bytes most = 0;
  for (const LiveKernel& kernel : all) most = std::max(most, kernel.live);
  return most;
}

Trace planned_sample(const std::string& name) {
  return read_mwc(std::filesystem::path(MEMWALL_SOURCE) / "traces/samples/captures/planned" / (name + ".mwc.gz")).trace;
}

// `policies`: texts with a space between them.
Trace simulated_plan(const std::string& name, const std::string& policies) {
  const Machine machine = load_machine("h100-sxm-80gb");
  const auto pricer = make_pricer(machine);
  const Trace base = modelled_on(planned_sample(name.substr(0, name.find('-')) + "-base"), machine);
  std::vector<PolicySpec> all;
  std::istringstream words(policies);
  for (std::string policy; words >> policy;) all.push_back(parse_policy(policy));
  return apply_rewriters(base, all, machine, *pricer);
}

// What a program is told to do, by the last of the policies.
PlanRealization realization(const std::string& name, const std::string& policies) {
  const Machine machine = load_machine("h100-sxm-80gb");
  const auto pricer = make_pricer(machine);
  const Trace base = modelled_on(planned_sample(name.substr(0, name.find('-')) + "-base"), machine);
  std::vector<PolicySpec> all;
  std::istringstream words(policies);
  for (std::string policy; words >> policy;) all.push_back(parse_policy(policy));
  const PlannedStep step = plan_rewriters(base, all, machine, *pricer);
  return realization_of(step.plan, step.trace, Dataflow(step.trace));
}

class PlannedCapture : public testing::TestWithParam<PlannedCase> {};

TEST_P(PlannedCapture, HasTheKernelsAndTheBytesThatThePolicySays) {
  const std::vector<LiveKernel> ran = kernels(planned_sample(GetParam().name));
  const std::vector<LiveKernel> said = kernels(simulated_plan(GetParam().name, GetParam().policy));
  ASSERT_EQ(said.size(), ran.size());
  EXPECT_EQ(peak(said), peak(ran));
  const bool selective = std::string(GetParam().policy).starts_with("selective");
  for (std::size_t i = 0; i < ran.size(); ++i) {
    SCOPED_TRACE("kernel " + std::to_string(i) + ", " + ran[i].name);
    ASSERT_EQ(said[i].name, ran[i].name);
    if (ran[i].name.starts_with("forward"))
      EXPECT_LE(said[i].live, ran[i].live);  // Python's variables hold some results longer than they are used
    else if (selective && ran[i].name.starts_with("recompute"))
      EXPECT_GE(said[i].live, ran[i].live);  // results that are handed out go at the end of the re-run
    else
      EXPECT_EQ(said[i].live, ran[i].live);
  }
}

// What the plan says of re-runs is what ran: operators with their modules, unit by unit.
TEST_P(PlannedCapture, RunsAgainWhatThePlanNames) {
  const Trace ran = planned_sample(GetParam().name);
  std::vector<std::string> again, named;
  for (const Op& op : ran.ops)
    if (op.phase == Phase::recompute && runs_on_device(op.kind))
      again.push_back(ran.strings[op.module] + " " + ran.strings[op.operator_name]);
  const PlanRealization plan = realization(GetParam().name, GetParam().policy);
  std::size_t units = 0;
  for (const ModuleRecompute& recompute : plan.recompute) units += recompute.units.size();
  EXPECT_EQ(plan.runs_again.size(), units) << "each unit, once";
  EXPECT_TRUE(plan.lazy_operators.empty());
  EXPECT_TRUE(plan.unnamed.empty()) << plan.unnamed.front().reason;
  for (const NamedRerunOps& rerun : plan.runs_again) {
    EXPECT_TRUE(rerun.unit.has_value());
    for (const NamedOperator& op : rerun.operators) named.push_back(op.module + " " + op.name);
  }
  EXPECT_EQ(named, again);
}

INSTANTIATE_TEST_SUITE_P(
    , PlannedCapture,
    testing::Values(
        PlannedCase{"gpt-full", "checkpoint:mode=full"},
        PlannedCase{"gpt-full_to_the_end", "checkpoint:mode=full,early_stop=0"},
        PlannedCase{"gpt-last_kept", "checkpoint:mode=full,last=keep"},
        PlannedCase{"gpt-every_three", "checkpoint:every=3"}, PlannedCase{"gpt-first_two", "checkpoint:layers=2"},
        PlannedCase{"gpt-attention", "checkpoint:modules=h.*.attention"},
        PlannedCase{"gpt-save_mm_sdpa", "selective:save=mm+sdpa"},
        PlannedCase{"gpt-attention_save_mm_sdpa", "selective:save=mm+sdpa,modules=h.*.attention"},
        PlannedCase{"gpt-save_gelu", "selective:save=gelu"},
        PlannedCase{"resnet-blocks", "checkpoint:modules=blocks.*"},
        PlannedCase{"resnet-blocks_to_the_end", "checkpoint:modules=blocks.*,early_stop=0"},
        PlannedCase{"resnet-last_kept", "checkpoint:modules=blocks.*,last=keep"},
        PlannedCase{"resnet-first_four", "checkpoint:modules=blocks.*,layers=4"},
        PlannedCase{"resnet-stem", "checkpoint:modules=stem"}, PlannedCase{"resnet-full", "checkpoint:mode=full"},
        PlannedCase{"resnet-every_three", "checkpoint:every=3"},
        PlannedCase{"resnet-save_convolution", "selective:modules=blocks.*,save=convolution"},
        PlannedCase{"vit-full", "checkpoint:mode=full"},
        PlannedCase{"vit-attention", "checkpoint:modules=blocks.*.attention"},
        PlannedCase{"vit-save_mm_sdpa", "selective:save=mm+sdpa"}, PlannedCase{"llama-full", "checkpoint:mode=full"},
        PlannedCase{"llama-attention", "checkpoint:modules=layers.*.attention"},
        PlannedCase{"llama-save_mm_sdpa", "selective:save=mm+sdpa"}),
    [](const testing::TestParamInfo<PlannedCase>& one) {
      std::string name = one.param.name;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

// --- offload of activations

// What an offload does to a step: its kernels with what lives on the device, and the bytes of its copies.
struct OffloadedKernels {
  std::vector<LiveKernel> kernels;
  std::vector<Bytes> out, back;          // in the order of their calls
  std::vector<std::size_t> back_before;  // of each copy back: the number of the next kernel
};

OffloadedKernels offloaded_kernels(const Trace& trace) {
  const StepMemory step = step_memory(trace);
  OffloadedKernels all{kernels(step), {}, {}, {}};
  for (const StepCopy& copy : step.out) all.out.push_back(copy.bytes);
  for (const StepCopy& copy : step.back) {
    all.back.push_back(copy.bytes);
    all.back_before.push_back(copy.before);
  }
  return all;
}

struct OffloadedCase {
  const char* name;    // of the capture
  const char* policy;  // or several with spaces between
};

void PrintTo(const OffloadedCase& c, std::ostream* out) { *out << c.name; }

class OffloadedCapture : public testing::TestWithParam<OffloadedCase> {};

// Copies in the same order, copies back before the same kernels, and the same bytes at every kernel behind forward.
TEST_P(OffloadedCapture, HasTheKernelsTheCopiesAndTheBytesThatThePolicySays) {
  const OffloadedKernels ran = offloaded_kernels(planned_sample(GetParam().name));
  const OffloadedKernels said = offloaded_kernels(simulated_plan(GetParam().name, GetParam().policy));
  EXPECT_FALSE(ran.out.empty());
  EXPECT_EQ(said.out, ran.out);
  EXPECT_EQ(said.back, ran.back);
  EXPECT_EQ(said.back_before, ran.back_before);
  EXPECT_EQ(ran.back.size(), ran.out.size());
  EXPECT_EQ(peak(said.kernels), peak(ran.kernels));
  ASSERT_EQ(said.kernels.size(), ran.kernels.size());
  for (std::size_t i = 0; i < ran.kernels.size(); ++i) {
    SCOPED_TRACE("kernel " + std::to_string(i) + ", " + ran.kernels[i].name);
    ASSERT_EQ(said.kernels[i].name, ran.kernels[i].name);
    if (ran.kernels[i].name.starts_with("forward"))
      EXPECT_LE(said.kernels[i].live, ran.kernels[i].live);  // Python's variables hold some results longer
    else
      EXPECT_EQ(said.kernels[i].live, ran.kernels[i].live);
  }
}

// The moves are all that the policy decides, in the order in which the program's hooks sent them, and it brought them
// back in this order. Where memory goes with a small storage's showing (casts, when autocast's context ends), numbers
// count such small ones, too.
TEST_P(OffloadedCapture, MovesWhatThePlanNumbers) {
  const OffloadedKernels ran = offloaded_kernels(planned_sample(GetParam().name));
  const PlanRealization plan = realization(GetParam().name, GetParam().policy);
  EXPECT_TRUE(plan.unnamed.empty()) << plan.unnamed.front().reason;
  ASSERT_EQ(plan.offload.size(), 1u);
  const NamedOffload& offload = plan.offload.front();
  ASSERT_EQ(offload.moves.size(), offload.storages);
  std::vector<Bytes> out, back;
  std::map<std::uint64_t, Bytes> bytes_of;
  for (const HookMove& move : offload.moves) {
    EXPECT_TRUE(bytes_of.empty() || bytes_of.rbegin()->first < move.number);
    EXPECT_GE(move.bytes, offload.count_min_bytes);
    EXPECT_TRUE(move.give_back == HookMove::kEnd || move.give_back >= static_cast<std::int64_t>(move.number));
    bytes_of[move.number] = move.bytes;
    out.push_back(move.bytes);
  }
  for (const std::uint64_t number : offload.fetch_order) back.push_back(bytes_of.at(number));
  EXPECT_EQ(out, ran.out);
  EXPECT_EQ(back, ran.back);
}

constexpr const char* kOffload = "offload:what=activations,to=host,min_bytes=65536,prefetch=1";
constexpr const char* kOffloadFourAhead = "offload:what=activations,to=host,min_bytes=65536,prefetch=4";

INSTANTIATE_TEST_SUITE_P(
    , OffloadedCapture,
    testing::Values(OffloadedCase{"gpt-offload", kOffload}, OffloadedCase{"gpt-offload_four_ahead", kOffloadFourAhead},
                    OffloadedCase{"gpt-full_and_offload",
                                  "checkpoint:mode=full offload:what=activations,to=host,min_bytes=65536,prefetch=1"},
                    OffloadedCase{"resnet-offload", kOffload},
                    OffloadedCase{"resnet-offload_four_ahead", kOffloadFourAhead},
                    OffloadedCase{
                        "resnet-blocks_and_offload",
                        "checkpoint:modules=blocks.* offload:what=activations,to=host,min_bytes=65536,prefetch=1"},
                    OffloadedCase{"vit-offload_four_ahead", kOffloadFourAhead},
                    // Of a unit's input, which its first cast reads, nothing in backward but the re-run.
                    OffloadedCase{"llama-full_and_offload",
                                  "checkpoint:mode=full offload:what=activations,to=host,min_bytes=65536,prefetch=1"}),
    [](const testing::TestParamInfo<OffloadedCase>& one) {
      std::string name = one.param.name;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

// The plain step under the policy, as it is planned where nothing says what autograd saves.
OffloadedKernels planned_without_saves(const std::string& base) {
  const Machine machine = load_machine("h100-sxm-80gb");
  const auto pricer = make_pricer(machine);
  Trace plain = modelled_on(planned_sample(base), machine);
  for (Use& use : plain.uses) use.saved = false;
  return offloaded_kernels(apply_rewriters(plain, {parse_policy(kOffload)}, machine, *pricer));
}

// A storage leaves when autograd saves it. Where the trace does not say when that is, it leaves after its last use in
// forward: in another order, and others are the last ones, which stay.
TEST(OffloadedCaptures, WithoutWhatIsSavedLeaveAfterTheirLastUse) {
  const auto sorted = [](std::vector<Bytes> all) {
    std::sort(all.begin(), all.end());
    return all;
  };
  const std::vector<Bytes> gpt_ran = offloaded_kernels(planned_sample("gpt-offload")).out;
  const std::vector<Bytes> gpt_said = planned_without_saves("gpt-base").out;
  EXPECT_EQ(sorted(gpt_said), sorted(gpt_ran));
  EXPECT_NE(gpt_said, gpt_ran);
  // The input of the last block is used once more by its residual addition.
  const std::vector<Bytes> resnet_ran = offloaded_kernels(planned_sample("resnet-offload")).out;
  const std::vector<Bytes> resnet_said = planned_without_saves("resnet-base").out;
  const auto sum = [](const std::vector<Bytes>& all) { return std::accumulate(all.begin(), all.end(), Bytes{0}); };
  EXPECT_EQ(sum(resnet_ran) - sum(resnet_said), 1'605'632);
}

// A node of autograd's graph asks for all that it saved before its first kernel. Where the trace does not say what that
// is, the policy counts kernels, and brings the two operands of a linear layer back before one product each.
TEST(OffloadedCaptures, WithoutWhatIsSavedComeBackByKernel) {
  const OffloadedKernels ran = offloaded_kernels(planned_sample("gpt-offload"));
  const OffloadedKernels said = planned_without_saves("gpt-base");
  // Behind the mask of the last dropout: the result of gelu, and the weights, of the last block's second layer.
  const std::vector<Bytes> of_node = {2'097'152, 524'288};
  EXPECT_EQ(std::vector(ran.back.begin() + 1, ran.back.begin() + 3), of_node);
  EXPECT_EQ(ran.back_before[1], ran.back_before[2]);
  EXPECT_EQ(std::vector(said.back.begin() + 1, said.back.begin() + 3), std::vector(of_node.rbegin(), of_node.rend()));
  EXPECT_LT(said.back_before[1], said.back_before[2]);
}

// A step without what autograd keeps is planned from what backward reads, and is another one then.
TEST(PlannedCaptures, WhatIsKeptMakesTheDifference) {
  const Machine machine = load_machine("h100-sxm-80gb");
  const auto pricer = make_pricer(machine);
  Trace base = modelled_on(planned_sample("resnet-base"), machine);
  for (Use& use : base.uses) use.saved = false;
  const Trace plan = apply_rewriters(base, {parse_policy("checkpoint:modules=blocks.*")}, machine, *pricer);
  EXPECT_LT(count(plan, Phase::recompute), count(planned_sample("resnet-blocks"), Phase::recompute));
  EXPECT_TRUE(has_note(plan, "the trace does not say what autograd keeps"));
}

// What PyTorch refuses ("modified by an inplace operation", "has been mutated") is refused here, or joined.
TEST(PlannedCaptures, UnitsThatPyTorchRefusesAreNotPlanned) {
  const Machine machine = load_machine("h100-sxm-80gb");
  const auto pricer = make_pricer(machine);
  const Trace base = modelled_on(planned_sample("resnet-base"), machine);
  const auto why = [&](const char* policy) -> std::string {
    try {
      apply_rewriters(base, {parse_policy(policy)}, machine, *pricer);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(why("checkpoint:modules=stem.2").find("works in place on"), std::string::npos);
  EXPECT_NE(why("selective:modules=blocks.*,save=native_batch_norm").find("in place on"), std::string::npos);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
