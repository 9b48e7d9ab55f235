#include "policies/fusion_space.h"

#include <algorithm>
#include <limits>

namespace memwall {
namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 53;  // beyond, bytes of them would not fit 64 bits

// 0 where there is none, or where it is not a count.
std::int64_t product(const Shape& shape) {
  std::int64_t all = shape.empty() ? 0 : 1;
  for (const std::int64_t extent : shape) {
    if (extent <= 0 || all > kMostElements / extent) return 0;
    all *= extent;
  }
  return all;
}

// Elements of the storage if it holds `wanted` of them or its shape says otherwise; 0 where that is not known.
bool holds(const Trace& trace, StorageId storage, std::int64_t wanted) {
  const Storage& s = trace.storages[storage];
  if (wanted <= 0) return false;
  if (s.shape != 0) return product(trace.shapes[s.shape]) == wanted;
  if (s.bytes % wanted != 0) return false;
  const Bytes item = s.bytes / wanted;
  return item == 1 || item == 2 || item == 4 || item == 8 || item == 16;
}

std::optional<FusionSpace> rows_of(const Shape& shape) {
  if (shape.size() != 2 || product(shape) == 0) return std::nullopt;
  return FusionSpace{product(shape), shape[0], shape[1], false};
}

}  // namespace

std::optional<FusionSpace> fusion_space(const Trace& trace, const Op& op) {
  const Shape& shape = trace.shapes[op.shape];
  switch (op.operator_class) {
    case OperatorClass::elementwise:
    case OperatorClass::memory:
      if (product(shape) == 0) return std::nullopt;
      return FusionSpace{product(shape), 0, 0, false};
    case OperatorClass::normalization:
    case OperatorClass::reduction:
      return rows_of(shape);
    case OperatorClass::gemm:
      if (shape.size() != 4 || product(shape) == 0) return std::nullopt;
      return FusionSpace{product({shape[0], shape[1], shape[2]}), 0, 0, true};
    default:
      return std::nullopt;
  }
}

std::optional<FusionSpace> common_space(const FusionSpace& a, const FusionSpace& b) {
  if (a == b && !a.gemm) return a;
  if (a.rows > 0 && b.rows > 0) return std::nullopt;
  if (b.rows > 0 || b.gemm) return a.rows > 0 || a.gemm ? std::nullopt : common_space(b, a);
  // b runs element by element: over all of a, or over one element per row.
  if (b.elements == a.elements || (a.rows > 0 && b.elements == a.rows)) return a;
  return std::nullopt;
}

bool holds_one_per_element(const Trace& trace, StorageId storage, const FusionSpace& space) {
  return holds(trace, storage, space.elements);
}

bool holds_one_per_row(const Trace& trace, StorageId storage, const FusionSpace& space) {
  return holds(trace, storage, space.rows);
}

Bytes bytes_touched(const Trace& trace, StorageId storage, const FusionSpace& space) {
  const Storage& s = trace.storages[storage];
  const std::int64_t held = product(trace.shapes[s.shape]);
  if (held <= space.elements) return s.bytes;  // all of it, each element maybe more than once, or not known
  return s.bytes / held * space.elements;
}

}  // namespace memwall
