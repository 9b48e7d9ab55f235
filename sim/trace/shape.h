// Shapes: the extents of a tensor, or those of a piece of work, kept once each.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "sim/trace/interned.h"

namespace memwall {

using Shape = std::vector<std::int64_t>;
using ShapeId = std::uint32_t;  // 0 = unknown

// Product of extents: 1 of a scalar. REQUIRES: 64 bits hold it.
std::int64_t elements_of(std::span<const std::int64_t> extents);
// Likewise of a shape that may come from anywhere: 0 if it is unknown, holds what is no count, or more than 2^53
// elements, of which 64 bits would not hold the bytes.
std::int64_t known_elements(const Shape& shape);

// Interned shapes. Id 0 is always the empty one, which means unknown; a scalar is {1}.
class ShapeTable {
 public:
  ShapeId intern(const Shape& shape) { return shapes_.intern(shape); }
  const Shape& operator[](ShapeId id) const { return shapes_[id]; }
  std::size_t size() const { return shapes_.size(); }

 private:
  Interned<Shape, std::map<Shape, ShapeId>> shapes_;
};

}  // namespace memwall
