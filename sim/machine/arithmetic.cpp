#include "sim/machine/arithmetic.h"

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

}  // namespace memwall
