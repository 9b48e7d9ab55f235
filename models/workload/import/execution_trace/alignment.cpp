#include "models/workload/import/execution_trace/alignment.h"

#include <algorithm>

namespace memwall {
namespace {

using Sequence = std::span<const std::uint32_t>;

// A run of equal elements in the middle of an optimal path, and the differences of the whole path.
struct Snake {
  std::int32_t x = 0, y = 0, u = 0, v = 0;  // from (x, y) to (u, v)
  std::int32_t differences = 0;
};

class Aligner {
 public:
  Aligner(Sequence a, Sequence b, std::int64_t most) : a_(a), b_(b), most_(most) {
    const std::size_t size = 2 * (a.size() + b.size()) + 4;
    forward_.resize(size);
    backward_.resize(size);
  }

  // Appends the pairs of a[a0, a1) and b[b0, b1); false when there are too many differences.
  bool run(std::int32_t a0, std::int32_t a1, std::int32_t b0, std::int32_t b1, Alignment& out) {
    while (a0 < a1 && b0 < b1 && a_[a0] == b_[b0]) out.emplace_back(a0++, b0++);
    std::int32_t suffix = 0;
    while (a0 < a1 && b0 < b1 && a_[a1 - 1] == b_[b1 - 1]) --a1, --b1, ++suffix;
    if (a0 < a1 && b0 < b1) {
      Snake snake;
      if (!middle(a0, a1, b0, b1, snake)) return false;
      // Two or more differences split into two halves that both have fewer; with fewer the ends
      // would have been trimmed to nothing above.
      if (!run(a0, a0 + snake.x, b0, b0 + snake.y, out)) return false;
      for (std::int32_t i = 0; i < snake.u - snake.x; ++i) out.emplace_back(a0 + snake.x + i, b0 + snake.y + i);
      if (!run(a0 + snake.u, a1, b0 + snake.v, b1, out)) return false;
    }
    for (std::int32_t i = 0; i < suffix; ++i) out.emplace_back(a1 + i, b1 + i);
    return true;
  }

 private:
  // Myers' figure 4: furthest reaching paths from both corners until they overlap.
  bool middle(std::int32_t a0, std::int32_t a1, std::int32_t b0, std::int32_t b1, Snake& snake) {
    const std::int32_t n = a1 - a0, m = b1 - b0, delta = n - m;
    const bool odd = (delta & 1) != 0;
    const std::int32_t offset = n + m + 1;
    const std::int32_t half = (n + m + 1) / 2;
    forward_[offset + 1] = 0;
    backward_[offset + 1] = 0;
    for (std::int32_t d = 0; d <= half; ++d) {
      if (2 * static_cast<std::int64_t>(d) - 1 > most_) return false;
      for (std::int32_t k = -d; k <= d; k += 2) {
        std::int32_t x = step(forward_, offset, k, d);
        const std::int32_t x0 = x, y0 = x - k;
        while (x < n && x - k < m && x - k >= 0 && a_[a0 + x] == b_[b0 + x - k]) ++x;
        forward_[offset + k] = x;
        const std::int32_t r = delta - k;  // the same diagonal, counted from the other corner
        if (odd && r >= -(d - 1) && r <= d - 1 && x + backward_[offset + r] >= n) {
          snake = {x0, y0, x, x - k, 2 * d - 1};
          return true;
        }
      }
      for (std::int32_t k = -d; k <= d; k += 2) {
        std::int32_t x = step(backward_, offset, k, d);
        const std::int32_t x0 = x, y0 = x - k;
        while (x < n && x - k < m && x - k >= 0 && a_[a1 - 1 - x] == b_[b1 - 1 - (x - k)]) ++x;
        backward_[offset + k] = x;
        const std::int32_t r = delta - k;
        if (!odd && r >= -d && r <= d && x + forward_[offset + r] >= n) {
          snake = {n - x, m - (x - k), n - x0, m - y0, 2 * d};
          return true;
        }
      }
    }
    return false;
  }

  static std::int32_t step(const std::vector<std::int32_t>& reached, std::int32_t offset, std::int32_t k,
                           std::int32_t d) {
    const bool down = k == -d || (k != d && reached[offset + k - 1] < reached[offset + k + 1]);
    return down ? reached[offset + k + 1] : reached[offset + k - 1] + 1;
  }

  Sequence a_, b_;
  std::int64_t most_;
  std::vector<std::int32_t> forward_, backward_;
};

}  // namespace

std::optional<Alignment> align(Sequence a, Sequence b, std::uint32_t most_unmatched) {
  Alignment out;
  out.reserve(std::min(a.size(), b.size()));
  Aligner aligner(a, b, most_unmatched);
  if (!aligner.run(0, static_cast<std::int32_t>(a.size()), 0, static_cast<std::int32_t>(b.size()), out))
    return std::nullopt;
  if (a.size() + b.size() - 2 * out.size() > most_unmatched) return std::nullopt;
  return out;
}

}  // namespace memwall
