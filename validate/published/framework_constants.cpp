#include "validate/published/framework_constants.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace memwall {
namespace {

struct FittedTable {
  std::string_view table, gpu;
  FrameworkConstants constants;
};

// As `memwall validate --published FOLDER --fit` prints them.
constexpr FittedTable kFitted[] = {
    {"deepspeed_azure_zero3_a100", "A100 80 GB", {.kernels = 1.285, .network = 0.335, .host = 1}},
    {"internevo_7b_a100_throughput", "A100 80 GB", {.kernels = 1.011, .network = 1, .host = 1}},
    {"internevo_7b_a100_zero1_scope", "A100 80 GB", {.kernels = 1.032, .network = 0.894, .host = 1}},
    {"mosaic_llmfoundry_mpt_throughput", "a100_40gb", {.kernels = 1.084, .network = 1, .host = 1}},
    {"mosaic_llmfoundry_mpt_throughput", "h100_80gb", {.kernels = 1.291, .network = 0.345, .host = 1}},
    {"torchtitan_llama_perf_memory", "H100-96GB HBM2e 500W", {.kernels = 1.175, .network = 1, .host = 1}},
    {"torchtitan_llama_perf_memory", "A100-80GB", {.kernels = 1.068, .network = 1, .host = 1}},
    {"answerai_fsdp_qlora", "2x3090", {.kernels = 1.272, .network = 0.507, .host = 3.982}},
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
      break;
  }
  return 1;
}

}  // namespace

Machine with_attention(Machine machine, FlashAttention generation) {
  for (auto& [bytes, share] : machine.gpu.attention.forward.points) share *= beside_second(generation, bytes);
  return machine;
}

Machine with_network(Machine machine, double network) {
  for (Fabric& fabric : machine.fabrics) {
    fabric.bus_bandwidth *= network;
    for (CollectiveModel& model : fabric.collectives) model.bus_bandwidth *= network;
  }
  return machine;
}

std::string scale_text(const FrameworkConstants& constants) {
  return fmt::format("kernels={},host={},collectives=1", constants.kernels, constants.host);
}

FrameworkConstants fitted_constants(const std::string& table, const std::string& gpu) {
  const auto found = std::find_if(std::begin(kFitted), std::end(kFitted), [&](const FittedTable& fitted) {
    return fitted.table == table && fitted.gpu == gpu;
  });
  return found == std::end(kFitted) ? FrameworkConstants() : found->constants;
}

}  // namespace memwall
