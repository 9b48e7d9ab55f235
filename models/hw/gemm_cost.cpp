#include "models/hw/gemm_cost.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <limits>

#include "models/hw/kernel_cost.h"

namespace memwall {
namespace {

struct Tile {
  double m, n;
};
// What cuBLAS and CUTLASS ship for tensor cores; both orientations of the oblong ones.
constexpr std::array<Tile, 8> kTiles{
    {{256, 128}, {128, 256}, {128, 128}, {128, 64}, {64, 128}, {64, 64}, {64, 32}, {32, 64}}};
constexpr std::array<double, 8> kSplits{1, 2, 3, 4, 6, 8, 16, 32};
constexpr double kFullTile = 128 * 128;  // outputs in flight with which a multiprocessor reaches its rate
constexpr double kShortestLoop = 256;    // steps of k below which no library splits
constexpr int kFirstWithClusters = 9;    // compute capability from which two blocks share what they load (multicast)
constexpr double kLoopStep = 32;         // k advances in steps of this many elements
constexpr double kWidestAlignment = 128;

double round_up(double value, double step) { return std::ceil(value / step) * step; }

// Rate of one multiprocessor in the main loop for this tile, if it has enough in flight.
double main_loop_rate(const Gpu& gpu, Tile tile, DataType type, double share) {
  const double multiprocessors = gpu.multiprocessors;
  const double compute = peak_flops(gpu, type, OperatorClass::gemm) * main_loop_share(gpu, type) * share;
  if (gpu.l2_bandwidth <= 0) return compute / multiprocessors;
  const double loaded_together = gpu.compute_major >= kFirstWithClusters ? 2 : 1;
  const double rows = tile.m * loaded_together;
  const double per_byte = 2 * rows * tile.n / ((rows + tile.n) * element_bytes(type));
  return std::min(compute, per_byte * gpu.l2_bandwidth) / multiprocessors;
}

// The partial sums of split k: written and read in fp32, then the result once more.
double adding_up(const Machine& machine, const GemmShape& shape, double splits) {
  if (splits <= 1) return 0;
  const double bytes = 4 * (2 * splits + 1) * shape.batch * shape.m * shape.n;
  return bytes / machine.links[machine.hbm_link].bandwidth +
         to_seconds(efficiency_of(machine.gpu, OperatorClass::elementwise).fixed);
}

GemmPlan plan_of(const Machine& machine, const GemmShape& shape, Tile tile, double splits, double rate) {
  const double blocks = shape.batch * std::ceil(shape.m / tile.m) * std::ceil(shape.n / tile.n) * splits;
  const double per_multiprocessor = std::ceil(blocks / machine.gpu.multiprocessors);
  const double loop = round_up(std::max(std::ceil(shape.k / splits), std::min(shape.k, kShortestLoop)), kLoopStep);
  const double alone = std::min(1.0, std::sqrt(tile.m * tile.n / kFullTile));  // share of the rate that one block has
  const double busy = std::max(per_multiprocessor, 1 / alone);                 // in blocks at full rate
  const double waves = std::max(1.0, per_multiprocessor * alone);
  GemmPlan plan;
  plan.tile_m = static_cast<std::uint32_t>(tile.m);
  plan.tile_n = static_cast<std::uint32_t>(tile.n);
  plan.splits = static_cast<std::uint32_t>(splits);
  plan.per_multiprocessor = per_multiprocessor;
  plan.seconds = busy * 2 * tile.m * tile.n * loop / rate + waves * to_seconds(machine.gpu.matrix.start_up) +
                 adding_up(machine, shape, splits);
  return plan;
}

double power_of_two_in(double extent) {
  double power = 1;
  while (power < kWidestAlignment && std::fmod(extent, 2 * power) == 0) power *= 2;
  return power;
}

// The record of the type that products of `type` are computed in; 0 = none is known.
FlopsPerSecond fastest_measured(const Gpu& gpu, DataType type) {
  const DataType used = arithmetic_type(gpu, type, OperatorClass::gemm);
  for (const MatrixUnits::MainLoop& loop : gpu.matrix.main_loops)
    if (loop.data_type == used) return loop.record;
  return 0;
}

// {images, input channels, output channels, output positions, kernel taps, groups} as an implicit GEMM.
GemmShape forward_product(const Shape& s) {
  const auto at = [&](std::size_t i) { return static_cast<double>(s[i]); };
  return {at(5), at(0) * at(3), at(2) / at(5), at(1) / at(5) * at(4)};
}

// Layout conversions: two passes over what the op moves at least; backward, of gradient, input and input's gradient
// (three tensors, about that many bytes) eight.
double conversion_seconds(const Machine& machine, const Op& op, double taps) {
  if (taps == 1 && op.phase != Phase::backward) return 0;  // a product of matrices as they lie
  const DataType type = arithmetic_type(machine.gpu, op.data_type, OperatorClass::convolution);
  if (type == DataType::fp32 || type == DataType::fp64 || op.bytes <= 0) return 0;
  const double passes = op.phase == Phase::backward ? 8.0 / 3 : 2;
  const double share = efficiency_of(machine.gpu, OperatorClass::memory).memory;
  return passes * static_cast<double>(op.bytes) / (machine.links[machine.hbm_link].bandwidth * share);
}

// Forward: one product. Backward: that by the inputs and that by the weights, of equal FLOPs each; an op
// whose FLOPs are those of one is taken to have the weights' alone, as the first layer has.
double convolution_seconds(const Machine& machine, const Op& op, const Shape& shape) {
  const GemmShape f = forward_product(shape);
  const MatrixUnits& matrix = machine.gpu.matrix;
  const bool backward = op.phase == Phase::backward;
  const double share = backward && matrix.convolution_backward > 0 ? matrix.convolution_backward : matrix.convolution;
  const FlopsPerSecond record = fastest_measured(machine.gpu, op.data_type);
  const auto seconds = [&](const GemmShape& g) {
    const double planned =
        plan_gemm(machine, g, op.data_type, share, row_alignment(g, op.data_type, Phase::forward)).seconds;
    return record > 0 ? std::max(planned, g.flops() / record) : planned;
  };
  const double conversions = conversion_seconds(machine, op, static_cast<double>(shape[4]));
  if (!backward) return conversions + seconds(f);
  const GemmShape weights{f.batch, f.n, f.k, f.m};
  if (op.flops > 0 && op.flops < 1.5 * f.flops()) return conversions + seconds(weights);
  const auto taps = static_cast<double>(shape[4]);
  const GemmShape inputs{f.batch, f.m, f.k / taps, f.n * taps};
  return conversions + seconds(weights) + seconds(inputs);
}

}  // namespace

GemmPlan plan_gemm(const Machine& machine, const GemmShape& shape, DataType type, double share, double aligned) {
  assert(shape.batch > 0 && shape.m > 0 && shape.n > 0 && shape.k > 0);
  const double alignment = machine.gpu.matrix.alignment.at(aligned);
  GemmPlan best;
  best.seconds = std::numeric_limits<double>::infinity();
  for (const Tile tile : kTiles) {
    const double rate = main_loop_rate(machine.gpu, tile, type, share) * alignment;
    for (const double splits : kSplits)
      if (const GemmPlan plan = plan_of(machine, shape, tile, splits, rate); plan.seconds < best.seconds) best = plan;
  }
  return best;
}

double row_alignment(const GemmShape& shape, DataType type, Phase phase) {
  const double backward = phase == Phase::backward ? power_of_two_in(shape.m) : kWidestAlignment;
  const double elements = std::min({power_of_two_in(shape.n), power_of_two_in(shape.k), backward});
  return std::min(kWidestAlignment, elements * element_bytes(type));
}

bool prices_products(const Gpu& gpu, const Op& op, const Shape& shape) {
  const bool gemm = op.operator_class == OperatorClass::gemm && shape.size() == 4;
  const bool convolution = op.operator_class == OperatorClass::convolution && shape.size() == 6;
  if (gpu.matrix.main_loops.empty() || gpu.multiprocessors == 0 || (!gemm && !convolution)) return false;
  if (std::any_of(shape.begin(), shape.end(), [](std::int64_t extent) { return extent <= 0; })) return false;
  // Few channels to a group leave matrix units idle: such a convolution is bound by memory, not a product.
  return gemm || shape[2] / shape[5] >= 8;
}

double product_seconds(const Machine& machine, const Op& op, const Shape& shape) {
  assert(prices_products(machine.gpu, op, shape));
  if (op.operator_class == OperatorClass::convolution) return convolution_seconds(machine, op, shape);
  const auto at = [&](std::size_t i) { return static_cast<double>(shape[i]); };
  const GemmShape g{at(0), at(1), at(2), at(3)};
  const double seconds = plan_gemm(machine, g, op.data_type, 1, row_alignment(g, op.data_type, op.phase)).seconds;
  const FlopsPerSecond record = fastest_measured(machine.gpu, op.data_type);
  return record > 0 ? std::max(seconds, g.flops() / record) : seconds;
}

}  // namespace memwall
