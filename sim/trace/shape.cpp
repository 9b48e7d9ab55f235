#include "sim/trace/shape.h"

namespace memwall {

std::int64_t elements_of(std::span<const std::int64_t> extents) {
  std::int64_t all = 1;
  for (const std::int64_t extent : extents) all *= extent;
  return all;
}

std::int64_t known_elements(const Shape& shape) {
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  std::int64_t all = shape.empty() ? 0 : 1;
  for (const std::int64_t extent : shape) {
    if (extent <= 0 || all > kMost / extent) return 0;
    all *= extent;
  }
  return all;
}

}  // namespace memwall
