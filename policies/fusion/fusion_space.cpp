#include "policies/fusion/fusion_space.h"

#include <algorithm>

#include "policies/trace/shapes.h"

namespace memwall {
namespace {

// Elements of the storage if it holds `wanted` of them or its shape says otherwise; 0 where that is not known.
bool holds(const Trace& trace, StorageId storage, std::int64_t wanted) {
  const Storage& s = trace.storages[storage];
  if (wanted <= 0) return false;
  if (s.shape != 0) return known_elements(trace.shapes[s.shape]) == wanted;
  if (s.bytes % wanted != 0) return false;
  const Bytes item = s.bytes / wanted;
  return item == 1 || item == 2 || item == 4 || item == 8 || item == 16;
}

// The axis of `whole` that is missing in `reduced`: the last ones, or the first ones.
FusionAxis reduced_axis(const Shape& whole, const Shape& reduced) {
  if (whole.size() == reduced.size()) {  // reduced axes stay, with extent 1
    std::size_t first = whole.size(), last = 0;
    for (std::size_t i = 0; i < whole.size(); ++i)
      if (whole[i] != reduced[i]) first = std::min(first, i), last = i;
    if (first > last) return FusionAxis::unknown;
    const bool none_before = known_elements({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(first)}) <= 1;
    const bool none_behind = known_elements({whole.begin() + static_cast<std::ptrdiff_t>(last) + 1, whole.end()}) <= 1;
    return none_behind ? FusionAxis::inner : none_before ? FusionAxis::outer : FusionAxis::unknown;
  }
  const Shape all = squeezed(whole), left = squeezed(reduced);
  if (left.size() >= all.size()) return FusionAxis::unknown;
  const bool leads = std::equal(left.begin(), left.end(), all.begin());
  const bool trails = std::equal(left.rbegin(), left.rend(), all.rbegin());
  if (leads == trails) return FusionAxis::unknown;
  return leads ? FusionAxis::inner : FusionAxis::outer;
}

// From the shapes of the storages that the op reads and writes.
FusionAxis axis_of(const Trace& trace, const Op& op, const FusionSpace& space) {
  if (space.rows != space.width) return FusionAxis::any;
  if (op.operator_class == OperatorClass::normalization) return FusionAxis::inner;
  for (const Use& in : trace.uses_of(op)) {
    const Shape& whole = trace.shapes[trace.storages[in.storage].shape];
    if (in.access != Access::read || known_elements(whole) != space.elements) continue;
    for (const Use& out : trace.uses_of(op)) {
      const Shape& reduced = trace.shapes[trace.storages[out.storage].shape];
      if (out.access == Access::write && known_elements(reduced) == space.rows) return reduced_axis(whole, reduced);
    }
  }
  return FusionAxis::unknown;
}

std::optional<FusionSpace> rows_of(const Trace& trace, const Op& op, const Shape& shape) {
  if (shape.size() != 2 || known_elements(shape) == 0) return std::nullopt;
  FusionSpace space{known_elements(shape), shape[0], shape[1], false, FusionAxis::any};
  space.axis = axis_of(trace, op, space);
  return space;
}

}  // namespace

std::optional<FusionSpace> fusion_space(const Trace& trace, const Op& op) {
  const Shape& shape = trace.shapes[op.shape];
  switch (op.operator_class) {
    case OperatorClass::elementwise:
    case OperatorClass::memory:
      if (known_elements(shape) == 0) return std::nullopt;
      return FusionSpace{known_elements(shape), 0, 0, false, FusionAxis::any};
    case OperatorClass::normalization:
    case OperatorClass::reduction:
      return rows_of(trace, op, shape);
    case OperatorClass::gemm:
      if (shape.size() != 4 || known_elements(shape) == 0) return std::nullopt;
      return FusionSpace{known_elements({shape[0], shape[1], shape[2]}), 0, 0, true, FusionAxis::any};
    default:
      return std::nullopt;
  }
}

std::optional<FusionSpace> common_space(const FusionSpace& a, const FusionSpace& b) {
  if (a == b && !a.gemm && a.axis != FusionAxis::unknown) return a;
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
  const std::int64_t held = known_elements(trace.shapes[s.shape]);
  if (held <= space.elements) return s.bytes;  // all of it, each element maybe more than once, or not known
  return s.bytes / held * space.elements;
}

}  // namespace memwall
