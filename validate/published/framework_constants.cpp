#include "validate/published/framework_constants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string_view>
#include <utility>

namespace memwall {
namespace {

struct FittedTable {
  std::string_view table, gpu;
  FrameworkConstants constants;
};

// As `memwall validate --published FOLDER --fit` prints them, of GPUs with three fitted rows or more: as many as constants.
constexpr FittedTable kFitted[] = {
    {"vtrain_single_node_a100_iter_time", "A100", {.products = 1.248, .host = 2.082}},
    {"vtrain_multi_node_a100_iter_time", "A100", {.products = 1.17, .network = 0.974}},
    {"bloom176b_prequel_a100_grid", "A100 80 GB", {.products = 1.229}},
    {"bloom176b_prequel_a100_grid", "A100 80 GB since 25 February", {}},
    {"qwen_finetune_memory_time_a100", "A100 80 GB", {.products = 0.925}},
    {"deepspeed_azure_zero3_a100", "A100 80 GB", {.products = 1.292, .network = 0.35, .host = 3.982}},
    {"internevo_7b_a100_throughput", "A100 80 GB", {.products = 1.022, .network = 0.838}},
    {"mosaic_llmfoundry_mpt_throughput", "a100_40gb", {.products = 1.199}},
    {"mosaic_llmfoundry_mpt_throughput", "h100_80gb", {.products = 1.022, .network = 0.577, .host = 1.991}},
    {"answerai_fsdp_qlora", "2x3090", {.products = 0.88, .network = 0.993, .host = 2.504}},
};

}  // namespace

Machine with_products(Machine machine, double time) {
  for (MatrixUnits::MainLoop& loop : machine.gpu.matrix.main_loops) loop.share /= time, loop.sustained /= time;
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
  constexpr std::pair<std::string_view, double> kHooks[] = {{"fsdp:", 100}, {"deepspeed:", 60}};  // us, their defaults
  if (host == 1) return policies;
  for (std::string& policy : policies)
    for (const auto& [name, microseconds] : kHooks)
      if (policy.starts_with(name)) policy += fmt::format(",hook_us={}", std::round(microseconds * host * 1000) / 1000);
  return policies;
}

std::string scale_text(const FrameworkConstants& constants) {
  return fmt::format("kernels=1,host={},collectives=1", constants.host);
}

bool has_fitted_constants(const std::string& table, const std::string& gpu) {
  return std::any_of(std::begin(kFitted), std::end(kFitted),
                     [&](const FittedTable& fitted) { return fitted.table == table && fitted.gpu == gpu; });
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
  return constants;
}

}  // namespace memwall
