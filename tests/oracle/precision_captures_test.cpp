// Do the policies `precision` and `attention` make of a captured step what PyTorch runs when the program computes in
// another precision, or takes another kernel of attention? Captures of both, on fake tensors
// (traces/samples/captures/recipes/make_recipes.py): the same kernels in the same order, with the same work, and the
// same bytes on the device at each.
#include <gtest/gtest.h>

#include <filesystem>

#include "models/hw/machine_file.h"
#include "models/hw/modelled_step.h"
#include "models/hw/pricer.h"
#include "models/workload/import/execution_trace/execution_step.h"
#include "models/workload/import/mwc/mwc_import.h"
#include "sim/policy/registry.h"
#include "sim/trace/trace_check.h"
#include "tests/support/kernel_lines.h"
#include "tests/support/shared_data.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct PrecisionCase {
  const char* network;
  const char* from;  // captures
  const char* to;
  std::vector<std::string> policies;
};

void PrintTo(const PrecisionCase& c, std::ostream* out) { *out << c.network << " " << c.to; }

Trace captured(const PrecisionCase& c, const char* name) {
  const auto folder = std::filesystem::path(MEMWALL_SOURCE) / "traces/samples/captures/recipes";
  return modelled_on(read_mwc(folder / (std::string(c.network) + "-" + name + ".mwc.gz")).trace,
                     load_machine("h100-sxm-80gb"));
}

class PrecisionCaptures : public testing::TestWithParam<PrecisionCase> {};

TEST_P(PrecisionCaptures, AreWhatPytorchRuns) {
  const PrecisionCase& c = GetParam();
  const Machine machine = load_machine("h100-sxm-80gb");
  std::vector<PolicySpec> policies;
  for (const std::string& policy : c.policies) policies.push_back(parse_policy(policy));
  const Trace found = apply_rewriters(captured(c, c.from), policies, machine, *make_pricer(machine));
  EXPECT_EQ(check(found), std::vector<std::string>{});
  // A capture takes for forward what a GradScaler does between backward and the optimizer's step.
  const bool scaled = std::string(c.to).starts_with("amp_fp16");
  EXPECT_EQ(kernel_difference(found, captured(c, c.to), scaled ? Phases::are_not_told : Phases::are_told), "");
}

// Of a whole network: docs/studies.md compares its times.
TEST(PrecisionOfGpt2, IsWhatPytorchRuns) {
  const Machine machine = load_machine("a100-sxm-40gb");
  const auto sample = [&](const char* name) {
    return modelled_on(read_mwc(std::filesystem::path(MEMWALL_SOURCE) / "traces/samples/captures" / name).trace,
                       machine);
  };
  const Trace found = apply_rewriters(sample("gpt2_124m_fp32.mwc.gz"),
                                      {parse_policy("precision:amp_bf16"), parse_policy("attention:flash")}, machine,
                                      *make_pricer(machine));
  EXPECT_EQ(kernel_difference(found, sample("gpt2_124m.mwc.gz")), "");
}

std::vector<PrecisionCase> cases() {
  std::vector<PrecisionCase> all;
  for (const char* const network : {"gpt", "llama", "bert", "resnet", "vit"}) {
    const bool casts_logits = std::string(network) == "llama";
    all.push_back({network, "fp32", "tf32", {"precision:tf32"}});
    all.push_back({network, "fp32", "bf16", {casts_logits ? "precision:bf16,loss_in_fp32=1" : "precision:bf16"}});
    all.push_back(
        {network, "fp32", "amp_bf16", {casts_logits ? "precision:amp_bf16,loss_in_fp32=1" : "precision:amp_bf16"}});
    all.push_back(
        {network, "fp32", "amp_fp16", {casts_logits ? "precision:amp_fp16,loss_in_fp32=1" : "precision:amp_fp16"}});
  }
  for (const char* const network : {"gpt", "llama", "bert", "vit"}) {
    const std::string logits = std::string(network) == "llama" ? ",loss_in_fp32=1" : "";
    all.push_back({network, "bf16", "bf16_flash", {"attention:flash"}});
    all.push_back({network, "bf16_flash", "bf16", {"attention:efficient"}});
    all.push_back({network, "amp_bf16", "amp_flash", {"attention:flash"}});
    all.push_back({network, "amp_flash", "amp_bf16", {"attention:efficient"}});
    all.push_back({network, "fp32", "bf16_flash", {"precision:bf16" + logits, "attention:flash"}});
    all.push_back({network, "fp32", "amp_flash", {"precision:amp_bf16" + logits, "attention:flash"}});
  }
  for (const char* const network : {"gpt", "llama", "bert", "resnet", "vit"})
    all.push_back({network,
                   "fp32_fused",
                   "amp_fp16_fused",
                   {std::string(network) == "llama" ? "precision:amp_fp16,loss_in_fp32=1" : "precision:amp_fp16"}});
  all.push_back({"llama", "bf16_grouped_flash", "bf16_grouped_math", {"attention:math"}});
  all.push_back({"llama", "amp_grouped_flash", "amp_grouped_math", {"attention:math"}});
  for (const char* const network : {"gpt", "bert"})
    all.push_back({network, "fp32_shared", "amp_shared", {"precision:amp_bf16"}});
  all.push_back({"gpt", "fp32_chunked", "amp_chunked", {"precision:amp_bf16"}});
  for (const char* const network : {"gpt", "llama", "bert", "vit"}) {
    const bool drops = std::string(network) == "gpt";
    const std::string math = drops || std::string(network) == "bert" ? "attention:math,dropout=1" : "attention:math";
    const std::string logits = std::string(network) == "llama" ? ",loss_in_fp32=1" : "";
    all.push_back({network, "fp32", "fp32_math", {math}});
    all.push_back({network, "bf16", "bf16_math", {math}});
    all.push_back({network, "bf16_flash", "bf16_math", {math}});
    all.push_back({network, "amp_bf16", "amp_math", {math}});
    all.push_back({network, "fp32", "amp_math", {"precision:amp_bf16" + logits, math}});
    if (std::string(network) == "vit") continue;
    all.push_back({network, "bf16", "fp8", {"precision:fp8"}});
    all.push_back({network, "fp32", "fp8", {"precision:fp8" + logits}});
  }
  all.push_back({"gpt", "bf16_plain", "bf16_flash", {"attention:flash"}});
  all.push_back({"gpt", "bf16_plain", "bf16", {"attention:efficient"}});
  all.push_back({"gpt", "amp_plain", "amp_flash", {"attention:flash"}});
  all.push_back({"gpt", "amp_plain", "amp_bf16", {"attention:efficient"}});
  return all;
}

INSTANTIATE_TEST_SUITE_P(, PrecisionCaptures, testing::ValuesIn(cases()), [](const auto& pair) {
  return std::string(pair.param.network) + "_" + pair.param.from + "_to_" + pair.param.to;
});

// An ExecutionTrace of a real GPU: several kernels of one call fill a gradient, and its convolutions are in TF32 or
// fp32.
TEST(PrecisionOfAnExecutionTrace, IsSoundAndChangesItsMemory) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "MEMWALL_SHARED has no captures";
  const Machine machine = load_machine("a100-sxm-40gb");
  const Trace before =
      modelled_on(import_execution_trace(*data / "traces/execution_trace/vgg13_h100_bs512.json", {}).trace, machine);
  for (const char* const policy : {"precision:amp_bf16", "precision:bf16"}) {
    const Trace after = apply_rewriters(before, {parse_policy(policy)}, machine, *make_pricer(machine));
    EXPECT_EQ(check(after), std::vector<std::string>{}) << policy;
    std::size_t low = 0;
    for (const Op& op : after.ops) low += op.data_type == DataType::bf16 ? 1 : 0;
    EXPECT_GT(low, 30u) << policy;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
