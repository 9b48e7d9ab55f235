// What an op runs over, and what of a storage it touches: whether two ops can be one kernel, and what that
// kernel then moves, is decided by these.
//
// A kernel that a compiler makes runs over all elements of a tensor, or over rows of it that it reduces: then
// tensors of all elements and tensors of one element per row meet in it. The rule is that of TorchInductor
// (torch/_inductor/codegen/simd.py, SIMDScheduling.can_fuse): equal numbers of elements, or elements = rows x width.
#pragma once

#include <cstdint>
#include <optional>

#include "sim/trace/trace.h"

namespace memwall {

// Which of two axes of equal extent is reduced. Where extents differ, rows and width tell: `any`.
enum class FusionAxis : std::uint8_t { any, inner, outer, unknown };

struct FusionSpace {
  std::int64_t elements = 0;
  std::int64_t rows = 0, width = 0;  // of a reduction or normalization; 0: element by element
  bool gemm = false;                 // the elements are the results of a matrix product
  FusionAxis axis = FusionAxis::any;
  bool operator==(const FusionSpace&) const = default;
};

// Of an op that can be part of a fused kernel; none where its class cannot, or where its shape is not known.
std::optional<FusionSpace> fusion_space(const Trace& trace, const Op& op);

// The space of one kernel that does the work of both; none where there is no such kernel. A matrix product
// takes in what runs over its results, and nothing that reduces them.
std::optional<FusionSpace> common_space(const FusionSpace& a, const FusionSpace& b);

// Does the storage hold one element for each element of the space, or for each of its rows? By its shape, or
// where that is not known by its bytes (1, 2, 4, 8 or 16 per element).
bool holds_one_per_element(const Trace& trace, StorageId storage, const FusionSpace& space);
bool holds_one_per_row(const Trace& trace, StorageId storage, const FusionSpace& space);

// What an op over `space` reads or writes of the storage: all of it, or as much as it has elements for.
Bytes bytes_touched(const Trace& trace, StorageId storage, const FusionSpace& space);

}  // namespace memwall
