// Does a policy of policies/recipe make of a captured step what PyTorch runs when the program is changed so? Captures
// of both, on fake tensors (traces/samples/captures/recipes/make_recipes.py): the same kernels in the same order, with
// the same bytes on the device at each, the same work and the same states before the step.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "models/hw/pricer.h"
#include "models/workload/import/mwc/mwc_import.h"
#include "sim/policy/registry.h"
#include "sim/trace/trace_check.h"
#include "tests/support/step_memory.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct RecipeCase {
  const char* name;  // of the capture
  const char* policy;
};

void PrintTo(const RecipeCase& c, std::ostream* out) { *out << c.name; }

Trace captured(const std::string& name) {
  const auto folder = std::filesystem::path(MEMWALL_SOURCE) / "traces/samples/captures/recipes";
  return modelled_on(read_mwc(folder / (name + ".mwc.gz")).trace, load_machine("h100-sxm-80gb"));
}

Trace changed(const std::string& network, const std::string& policy) {
  const Machine machine = load_machine("h100-sxm-80gb");
  return apply_rewriters(captured(network + "-base"), {parse_policy(policy)}, machine, *make_pricer(machine));
}

// One line per kernel: "backward aten::addmm in 'h.0.up', 1234 bytes live". Sums of gradients without their module: a
// capture has none where AccumulateGrad forms one, or where it is one of a weight that several products read (the
// engine forms it behind the node of the weight's view), generators and policies have that of the node before it.
std::vector<std::string> kernels(const Trace& trace, bool with_phases) {
  std::vector<std::string> lines;
  for (const StepKernel& kernel : step_memory(trace).kernels) {
    const bool sum = kernel.name == "aten::add_" || (kernel.name == "aten::add" && kernel.phase == Phase::backward);
    const std::string module = sum ? "" : " in '" + kernel.module + "'";
    lines.push_back((with_phases ? text_of(kernel) + module : kernel.name) + ", " + std::to_string(total(kernel.live)) +
                    " bytes live");
  }
  return lines;
}

struct Work {
  int kernels = 0;
  Bytes bytes = 0;
  double flops = 0;
  bool operator==(const Work&) const = default;
};

void PrintTo(const Work& w, std::ostream* out) { *out << w.kernels << " kernels, " << w.bytes << " B, " << w.flops; }

// Of all kernels of each operator. PyTorch's schema of _fused_adam_ says that gradients are written, which its kernel
// does with a scaler's scale alone; a capture counts them, policies and generators do not.
std::map<std::string, Work> work(const Trace& trace, bool as_captured) {
  std::map<std::string, Work> sums;
  for (const Op& op : trace.ops) {
    if (op.kind != OpKind::kernel) continue;
    Work& sum = sums[trace.strings[op.operator_name]];
    sum.kernels += op.kernels;
    sum.bytes += op.bytes;
    sum.flops += op.flops;
    if (!as_captured || !trace.strings[op.operator_name].starts_with("aten::_fused_adam")) continue;
    for (const Use& use : trace.uses_of(op))
      if (use.access == Access::write && trace.storages[use.storage].kind == StorageKind::gradient)
        sum.bytes -= trace.storages[use.storage].bytes;
  }
  return sums;
}

class RecipeCaptures : public testing::TestWithParam<std::tuple<const char*, RecipeCase>> {};

TEST_P(RecipeCaptures, AreWhatPytorchRuns) {
  const auto& [network, c] = GetParam();
  const Trace found = changed(network, c.policy), expected = captured(std::string(network) + "-" + c.name);
  EXPECT_EQ(check(found), std::vector<std::string>{});
  // From the first update on a capture takes all for the optimizer's, and an update has no module.
  const bool with_phases = std::string(c.name).find("in_backward") == std::string::npos;
  const std::vector<std::string> a = kernels(found, with_phases), b = kernels(expected, with_phases);
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) ASSERT_EQ(a[i], b[i]) << "kernel " << i;
  EXPECT_EQ(a.size(), b.size());
  EXPECT_EQ(work(found, false), work(expected, true));
}

std::string name_of(const testing::TestParamInfo<RecipeCaptures::ParamType>& pair) {
  return std::string(std::get<0>(pair.param)) + "_" + std::get<1>(pair.param).name;
}

const RecipeCase kCases[] = {{"sgd", "optimizer:sgd"},
                             {"sgd_for_loop", "optimizer:sgd,kernels=for_loop"},
                             {"adam", "optimizer:adam"},
                             {"adam_fused", "optimizer:adam,kernels=fused"},
                             {"adamw_fused", "optimizer:adamw,kernels=fused"},
                             {"adamw_for_loop", "optimizer:adamw,kernels=for_loop"},
                             {"adamw_in_backward", "optimizer:adamw,in_backward=1"},
                             {"three_passes", "accumulate:3"},
                             {"pruned", "prune"}};

INSTANTIATE_TEST_SUITE_P(, RecipeCaptures,
                         testing::Combine(testing::Values("gpt", "llama", "bert", "resnet", "vit"),
                                          testing::ValuesIn(kCases)),
                         name_of);

// Of networks whose output layer has no bias and gives logits of each token.
INSTANTIATE_TEST_SUITE_P(OfTokens, RecipeCaptures,
                         testing::Combine(testing::Values("gpt", "llama"),
                                          testing::Values(RecipeCase{"chunked_loss", "loss:chunked,chunks=4"})),
                         name_of);

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
