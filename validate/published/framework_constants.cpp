#include "validate/published/framework_constants.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>
#include <utility>

namespace memwall {
namespace {

struct FittedTable {
  std::string_view table, gpu;
  FrameworkConstants constants;
};

// As `memwall validate --published FOLDER --fit` prints them.
constexpr FittedTable kFitted[] = {
    {"deepspeed_azure_zero3_a100", "A100 80 GB", {.products = 1.299, .network = 0.34}},
    {"internevo_7b_a100_throughput", "A100 80 GB", {.products = 1.102}},
    {"internevo_7b_a100_zero1_scope", "A100 80 GB", {.products = 1.048}},
    {"mosaic_llmfoundry_mpt_throughput", "a100_40gb", {.products = 1.279, .attention = 1.905}},
    {"mosaic_llmfoundry_mpt_throughput",
     "h100_80gb",
     {.products = 1.442, .network = 0.522, .host = 2.01, .attention = 1.905}},
    {"torchtitan_llama_perf_memory", "H100-96GB HBM2e 500W", {.products = 1.407}},
    {"torchtitan_llama_perf_memory", "A100-80GB", {.products = 1.091}},
    {"answerai_fsdp_qlora", "2x3090", {.products = 0.893, .network = 0.993, .host = 2}},
};

// By the bytes of one head's row, as AttentionCost::forward: heads of 64 and 128 in 16 bit. Beyond, the nearest.
double beside_second(FlashAttention generation, double bytes_of_row) {
  const bool narrow = bytes_of_row < 192;
  switch (generation) {
    case FlashAttention::first:
      return narrow ? 0.554 : 0.439;
    case FlashAttention::third:
      return narrow ? 1.519 : 1.811;
    case FlashAttention::second:
    case FlashAttention::triton:
      break;
  }
  return 1;
}

}  // namespace

Machine with_attention(Machine machine, FlashAttention generation, double time) {
  for (auto& [bytes, share] : machine.gpu.attention.forward.points) {
    share *= beside_second(generation, bytes);
    if (generation == FlashAttention::triton) share /= time;
  }
  return machine;
}

Machine with_products(Machine machine, double time) {
  for (MatrixUnits::MainLoop& loop : machine.gpu.matrix.main_loops) loop.share /= time;
  for (KernelEfficiency& efficiency : machine.gpu.efficiencies)
    if (efficiency.operator_class == OperatorClass::gemm || efficiency.operator_class == OperatorClass::convolution)
      efficiency.compute /= time;
  return machine;
}

Machine with_network(Machine machine, double network) {
  for (Fabric& fabric : machine.fabrics) {
    fabric.bus_bandwidth *= network;
    for (CollectiveModel& model : fabric.collectives) model.bus_bandwidth *= network;
  }
  return machine;
}

std::vector<std::string> with_hooks(std::vector<std::string> policies, double host) {
  constexpr std::pair<std::string_view, double> kHooks[] = {{"fsdp:", 100}, {"deepspeed:", 20}};  // us, their defaults
  if (host == 1) return policies;
  for (std::string& policy : policies)
    for (const auto& [name, microseconds] : kHooks)
      if (policy.starts_with(name)) policy += fmt::format(",hook_us={}", std::round(microseconds * host * 1000) / 1000);
  return policies;
}

std::string scale_text(const FrameworkConstants& constants) {
  return fmt::format("kernels=1,host={},collectives=1", constants.host);
}

FrameworkConstants fitted_constants(const std::string& table, const std::string& gpu) {
  FrameworkConstants constants;
  const FittedTable* first = nullptr;
  for (const FittedTable& fitted : kFitted) {
    if (fitted.table != table) continue;
    if (fitted.gpu == gpu) return fitted.constants;
    if (first == nullptr) first = &fitted;
  }
  if (first == nullptr) return constants;
  constants.host = first->constants.host;
  constants.attention = first->constants.attention;
  return constants;
}

}  // namespace memwall
