// Does a recomputing policy make of the plain step what PyTorch ran under torch.utils.checkpoint? Captures of both, on
// fake tensors (traces/samples/captures/planned/make_planned.py): the same kernels in the same order, the same bytes.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "models/hw/pricer.h"
#include "models/workload/import/mwc/mwc_import.h"
#include "sim/policy/registry.h"
#include "tests/support/rewrite_checks.h"

namespace memwall {
namespace {

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

std::vector<LiveKernel> kernels(const Trace& trace) {
  std::vector<LiveKernel> all;
  const std::vector<LiveBytes> live = live_bytes(trace);
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Op& op = trace.ops[id];
    if (runs_on_device(op.kind))
      all.push_back({std::string(to_string(op.phase)) + " " + trace.strings[op.operator_name],
                     std::accumulate(live[id].begin(), live[id].end(), Bytes{0})});
  }
  return all;
}

Bytes peak(const std::vector<LiveKernel>& all) {
  Bytes most = 0;
  for (const LiveKernel& kernel : all) most = std::max(most, kernel.live);
  return most;
}

Trace planned_sample(const std::string& name) {
  return read_mwc(std::filesystem::path(MEMWALL_SOURCE) / "traces/samples/captures/planned" / (name + ".mwc.gz")).trace;
}

Trace simulated_plan(const std::string& name, const std::string& policy) {
  const Machine machine = load_machine("h100-sxm-80gb");
  const auto pricer = make_pricer(machine);
  const Trace base = modelled_on(planned_sample(name.substr(0, name.find('-')) + "-base"), machine);
  return apply_rewriters(base, {parse_policy(policy)}, machine, *pricer);
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

}  // namespace
}  // namespace memwall
