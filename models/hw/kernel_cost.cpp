#include "models/hw/kernel_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/hw/attention_cost.h"
#include "models/hw/gemm_cost.h"
#include "sim/error.h"
#include "sim/machine/hbm_traffic.h"

namespace memwall {
namespace {

// Bytes of one row, where an op works on rows and its shape is known.
double row_bytes(const Op& op, const Shape& shape) {
  const bool rows = op.operator_class == OperatorClass::normalization || op.operator_class == OperatorClass::reduction;
  return rows && shape.size() == 2 ? static_cast<double>(shape[1]) * element_bytes(op.data_type) : 0;
}

// PyTorch's elementwise kernels give each thread four elements: of one byte each they move a quarter of what fp32's do
// at once. Half the bandwidth is an assumption, near which unpacking GPTQ's weights is (fitted half of the published
// Q-LoRA steps of Qwen).
constexpr double kByteElements = 0.5;

double memory_share(const KernelEfficiency& efficiency, const Op& op, const Shape& shape) {
  const bool backward = op.phase == Phase::backward && efficiency.backward_memory > 0;
  double share = backward ? efficiency.backward_memory : efficiency.memory;
  if (op.operator_class == OperatorClass::elementwise && op.data_type == DataType::int8) share *= kByteElements;
  const double row = row_bytes(op, shape);
  return row > 0 ? share * efficiency.width.at(row) : share;
}

double memory_seconds(const Machine& machine, const Op& op, double share) {
  if (op.bytes <= 0) return 0;
  const Gpu& gpu = machine.gpu;
  const auto bytes = static_cast<double>(op.bytes);
  const double hbm = machine.links[machine.hbm_link].bandwidth * share;
  if (gpu.l2_bytes <= 0 || gpu.l2_bandwidth <= 0) return bytes / hbm;
  const double missing = hbm_bytes(gpu, op);
  if (gpu.l2_streaming <= 0) return std::max(bytes / gpu.l2_bandwidth, missing / hbm);
  return (bytes - missing) / (gpu.l2_bandwidth * gpu.l2_streaming) + missing / hbm;
}

double roofline_seconds(const Machine& machine, const Op& op, const KernelEfficiency& efficiency) {
  if (op.flops <= 0) return 0;
  const double peak = peak_flops(machine.gpu, op.data_type, op.operator_class);
  if (peak <= 0) return 0;
  const double waves = op.waves;
  const double wave_share = waves > 1 ? waves / std::ceil(waves) : 1;
  return op.flops / (peak * efficiency.compute * wave_share);
}

double arithmetic_seconds(const Machine& machine, const Op& op, const Shape& shape,
                          const KernelEfficiency& efficiency) {
  if (prices_products(machine.gpu, op, shape)) return product_seconds(machine, op, shape);
  if (prices_attention(machine.gpu, op, shape)) return attention_seconds(machine, op, shape);
  return roofline_seconds(machine, op, efficiency);
}

// Seconds of a kernel that can be added up with others.
double require_countable(double seconds, const Machine& machine, const Op& op) {
  if (seconds <= kLongestSeconds) return seconds;
  throw UsageError(fmt::format(
      "Machine {}: a kernel of class {} with {:.4g} FLOPs and {} bytes takes {:.6g} s; expected at most {:.0f} s for "
      "one op, so a number of the machine, or the work that the step states, is mistaken.",
      machine.name, to_string(op.operator_class), op.flops, op.bytes, seconds, kLongestSeconds));
}

}  // namespace

KernelEfficiency efficiency_of(const Gpu& gpu, OperatorClass operator_class) {
  KernelEfficiency fallback;
  for (const KernelEfficiency& e : gpu.efficiencies) {
    if (e.operator_class == operator_class) return e;
    if (e.operator_class == OperatorClass::other) fallback = e;
  }
  return fallback;
}

double main_loop_share(const Gpu& gpu, DataType type) {
  const DataType used = arithmetic_type(gpu, type, OperatorClass::gemm);
  for (const MatrixUnits::MainLoop& loop : gpu.matrix.main_loops)
    if (loop.data_type == used) return loop.sustained > 0 ? loop.sustained : loop.share;
  return efficiency_of(gpu, OperatorClass::gemm).compute;
}

Machine in_short_runs(Machine machine) {
  for (MatrixUnits::MainLoop& loop : machine.gpu.matrix.main_loops) loop.sustained = 0;
  return machine;
}

double element_bytes(DataType type) {
  return static_cast<double>(bytes_of(type == DataType::unknown ? DataType::fp32 : type));
}

KernelParts kernel_parts(const Machine& machine, const Op& op, const Shape& shape) {
  const KernelEfficiency efficiency = efficiency_of(machine.gpu, op.operator_class);
  const double kernels = std::max<double>(op.kernels, 1);
  return {kernels * to_seconds(efficiency.fixed) + (kernels - 1) * to_seconds(machine.host.stream_gap),
          arithmetic_seconds(machine, op, shape, efficiency),
          memory_seconds(machine, op, memory_share(efficiency, op, shape))};
}

bool prices_by_shape(const Gpu& gpu, const Op& op, const Shape& shape) {
  return prices_products(gpu, op, shape) || prices_attention(gpu, op, shape);
}

Duration kernel_duration(const Machine& machine, const Op& op, const Shape& shape) {
  const KernelParts parts = kernel_parts(machine, op, shape);
  return from_seconds(require_countable(parts.fixed + parts.work(), machine, op));
}

double kernel_residual(const Gpu& gpu, const Op& op, const Shape& shape) {
  const double of_class = efficiency_of(gpu, op.operator_class).residual;
  const bool gemm = op.operator_class == OperatorClass::gemm;
  if (gemm && prices_products(gpu, op, shape) && gpu.matrix.residual > 0) return gpu.matrix.residual;
  const double attention = prices_attention(gpu, op, shape) ? attention_residual(gpu, shape) : 0;
  return attention > 0 ? attention : of_class;
}

}  // namespace memwall
