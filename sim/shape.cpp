#include "sim/shape.h"

namespace memwall {

ShapeTable::ShapeTable(const ShapeTable& other) {
  for (const Shape* shape : other.shapes_) intern(*shape);
}

ShapeTable& ShapeTable::operator=(const ShapeTable& other) {
  if (this != &other) *this = ShapeTable(other);
  return *this;
}

ShapeId ShapeTable::intern(const Shape& shape) {
  const auto [entry, added] = ids_.try_emplace(shape, static_cast<ShapeId>(shapes_.size()));
  if (added) shapes_.push_back(&entry->first);
  return entry->second;
}

}  // namespace memwall
