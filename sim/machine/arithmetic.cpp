#include "sim/machine/arithmetic.h"

#include <algorithm>
#include <span>

namespace memwall {
namespace {

FlopsPerSecond listed(const Gpu& gpu, DataType type) {
  for (const PeakRate& peak : gpu.peaks)
    if (peak.data_type == type) return peak.flops;
  return 0;
}

// The types in whose arithmetic a type can be computed, nearest first.
std::span<const DataType> wider(DataType type) {
  static constexpr DataType fp8[] = {DataType::fp8, DataType::fp16, DataType::fp32};
  static constexpr DataType fp16[] = {DataType::fp16, DataType::fp32};
  static constexpr DataType bf16[] = {DataType::bf16, DataType::fp32};
  static constexpr DataType tf32[] = {DataType::tf32, DataType::fp32};
  static constexpr DataType fp64[] = {DataType::fp64};
  static constexpr DataType int8[] = {DataType::int8, DataType::fp16, DataType::fp32};
  static constexpr DataType fp32[] = {DataType::fp32};
  switch (type) {
    case DataType::fp8:
      return fp8;
    case DataType::fp16:
      return fp16;
    case DataType::bf16:
      return bf16;
    case DataType::tf32:
      return tf32;
    case DataType::fp64:
      return fp64;
    case DataType::int8:
      return int8;
    default:
      return fp32;
  }
}

}  // namespace

bool uses_matrix_units(OperatorClass c) {
  return c == OperatorClass::gemm || c == OperatorClass::convolution || c == OperatorClass::attention;
}

DataType arithmetic_type(const Gpu& gpu, DataType type, OperatorClass operator_class) {
  const DataType used = uses_matrix_units(operator_class) || type == DataType::fp64 ? type : DataType::fp32;
  for (const DataType candidate : wider(used))
    if (listed(gpu, candidate) > 0) return candidate;
  return DataType::unknown;
}

FlopsPerSecond peak_flops(const Gpu& gpu, DataType type, OperatorClass operator_class) {
  const DataType used = arithmetic_type(gpu, type, operator_class);
  if (used != DataType::unknown) return listed(gpu, used);
  return gpu.peaks.empty() ? 0 : gpu.peaks.front().flops;
}

bool is_fused_attention(const Op& op, const Shape& shape) {
  return op.operator_class == OperatorClass::attention && (shape.size() == 7 || shape.size() == 8) &&
         (shape[6] == 0 || shape[6] == 1) &&
         std::all_of(shape.begin(), shape.begin() + 6, [](std::int64_t extent) { return extent > 0; });
}

double attention_flops(const Shape& shape) {
  const auto at = [&](std::size_t i) { return static_cast<double>(shape[i]); };
  const double queries = at(3), keys = at(4), seen = std::min(queries, keys);
  // Query i of a causal mask sees keys - queries + i + 1 of them.
  const double pairs = shape[6] != 0 ? seen * keys - seen * (seen - 1) / 2 : queries * keys;
  return 4 * at(0) * at(1) * pairs * at(5);
}

double performed_flops(const Op& op, const Shape& shape) {
  if (op.flops <= 0 || !is_fused_attention(op, shape)) return op.flops;
  return std::min(op.flops, attention_flops(shape) * (op.phase == Phase::backward ? kAttentionBackward : 1));
}

}  // namespace memwall
