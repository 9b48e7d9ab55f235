// What rules about shapes share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "sim/trace/shape.h"

namespace memwall {

// Without its extents of 1.
inline Shape squeezed(const Shape& shape) {
  Shape kept;
  std::copy_if(shape.begin(), shape.end(), std::back_inserter(kept), [](std::int64_t e) { return e != 1; });
  return kept;
}

}  // namespace memwall
