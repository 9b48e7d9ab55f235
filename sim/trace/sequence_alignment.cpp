#include "sim/trace/sequence_alignment.h"

#include <algorithm>
#include <bit>

namespace memwall {
namespace {

// A run of equal elements in the middle of an optimal path, and the differences of the whole path.
struct Snake {
  std::int32_t x = 0, y = 0, u = 0, v = 0;  // from (x, y) to (u, v)
  std::int32_t differences = 0;
};

class Aligner {
 public:
  Aligner(Keys a, Keys b, std::int64_t most) : a_(a), b_(b), most_(most) {
    const auto all = static_cast<std::int64_t>(a.size() + b.size());
    offset_ = static_cast<std::int32_t>((std::min(all, most) + 1) / 2 + 1);  // diagonals beyond are never reached
    forward_.resize(2 * static_cast<std::size_t>(offset_) + 1);
    backward_.resize(forward_.size());
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
    const std::int32_t half = (n + m + 1) / 2;
    forward_[offset_ + 1] = 0;
    backward_[offset_ + 1] = 0;
    for (std::int32_t d = 0; d <= half; ++d) {
      if (2 * static_cast<std::int64_t>(d) - 1 > most_) return false;
      for (std::int32_t k = -d; k <= d; k += 2) {
        std::int32_t x = step(forward_, k, d);
        const std::int32_t x0 = x, y0 = x - k;
        while (x < n && x - k < m && x - k >= 0 && a_[a0 + x] == b_[b0 + x - k]) ++x;
        forward_[offset_ + k] = x;
        const std::int32_t r = delta - k;  // the same diagonal, counted from the other corner
        if (odd && r >= -(d - 1) && r <= d - 1 && x + backward_[offset_ + r] >= n) {
          snake = {x0, y0, x, x - k, 2 * d - 1};
          return true;
        }
      }
      for (std::int32_t k = -d; k <= d; k += 2) {
        std::int32_t x = step(backward_, k, d);
        const std::int32_t x0 = x, y0 = x - k;
        while (x < n && x - k < m && x - k >= 0 && a_[a1 - 1 - x] == b_[b1 - 1 - (x - k)]) ++x;
        backward_[offset_ + k] = x;
        const std::int32_t r = delta - k;
        if (!odd && r >= -d && r <= d && x + forward_[offset_ + r] >= n) {
          snake = {n - x, m - (x - k), n - x0, m - y0, 2 * d};
          return true;
        }
      }
    }
    return false;
  }

  std::int32_t step(const std::vector<std::int32_t>& reached, std::int32_t k, std::int32_t d) const {
    const bool down = k == -d || (k != d && reached[offset_ + k - 1] < reached[offset_ + k + 1]);
    return down ? reached[offset_ + k + 1] : reached[offset_ + k - 1] + 1;
  }

  Keys a_, b_;
  std::int64_t most_;
  std::int32_t offset_;  // of diagonal 0
  std::vector<std::int32_t> forward_, backward_;
};

// Of pairs that ascend in their first, a longest chain that ascends in the second too (patience sorting). Of chains of
// one length, the one that ends lowest.
Alignment ascending_chain(const Alignment& pairs) {
  // tail[n]: where the lowest chain of n + 1 pairs ends; before[i]: the pair before i in the chain that ends at i.
  std::vector<std::size_t> tail, before(pairs.size());
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto place =
        std::lower_bound(tail.begin(), tail.end(), pairs[i].second,
                         [&](std::size_t t, std::uint32_t position) { return pairs[t].second < position; });
    before[i] = place == tail.begin() ? pairs.size() : *(place - 1);
    if (place == tail.end())
      tail.push_back(i);
    else
      *place = i;
  }
  Alignment chain;
  for (std::size_t i = tail.empty() ? pairs.size() : tail.back(); i < pairs.size(); i = before[i])
    chain.push_back(pairs[i]);
  std::reverse(chain.begin(), chain.end());
  return chain;
}

// Where each key stands, for whoever takes its places one by one: a table of open addresses, at most half full, whose
// slots begin lists through `next_`. Millions of keys that mostly stand once cost no allocation each.
class OccurrencesLeft {
 public:
  static constexpr std::uint32_t kNone = 0xffffffff;

  explicit OccurrencesLeft(Keys keys) : keys_(keys), slots_(std::bit_ceil(2 * keys.size() + 1)), next_(keys.size()) {
    for (std::uint32_t i = static_cast<std::uint32_t>(keys.size()); i-- > 0;) {
      Slot& slot = slot_of(keys[i]);
      next_[i] = slot.first;
      slot = {i, i};
    }
  }

  // The first place of the key that was not taken; kNone if none is left.
  std::uint32_t take(std::uint64_t key) {
    Slot& slot = slot_of(key);
    const std::uint32_t place = slot.first;
    if (place != kNone) slot.first = next_[place];
    return place;
  }

 private:
  struct Slot {
    std::uint32_t some = kNone;   // a place of its key; kNone: the slot is free
    std::uint32_t first = kNone;  // that is left
  };

  Slot& slot_of(std::uint64_t key) {
    const std::uint64_t mixed = (key ^ (key >> 32)) * 0x9e3779b97f4a7c15;
    for (std::size_t i = mixed >> 20;; ++i) {
      Slot& slot = slots_[i & (slots_.size() - 1)];
      if (slot.some == kNone || keys_[slot.some] == key) return slot;
    }
  }

  Keys keys_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> next_;  // of each place the next of its key
};

}  // namespace

std::optional<Alignment> longest_common_subsequence(Keys a, Keys b, std::uint32_t most_unmatched) {
  Alignment out;
  out.reserve(std::min(a.size(), b.size()));
  Aligner aligner(a, b, most_unmatched);
  if (!aligner.run(0, static_cast<std::int32_t>(a.size()), 0, static_cast<std::int32_t>(b.size()), out))
    return std::nullopt;
  if (a.size() + b.size() - 2 * out.size() > most_unmatched) return std::nullopt;
  return out;
}

Alignment pairs_by_occurrence(Keys a, Keys b) {
  OccurrencesLeft left(b);
  Alignment pairs;
  pairs.reserve(std::min(a.size(), b.size()));
  for (std::uint32_t i = 0; i < a.size(); ++i)
    if (const std::uint32_t j = left.take(a[i]); j != OccurrencesLeft::kNone) pairs.emplace_back(i, j);
  return pairs;
}

Alignment align_by_occurrence(Keys a, Keys b) {
  const std::size_t least = std::min(a.size(), b.size());
  std::size_t front = 0, back = 0;
  while (front < least && a[front] == b[front]) ++front;
  while (back < least - front && a[a.size() - 1 - back] == b[b.size() - 1 - back]) ++back;
  const Alignment middle = ascending_chain(
      pairs_by_occurrence(a.subspan(front, a.size() - back - front), b.subspan(front, b.size() - back - front)));
  Alignment out;
  for (std::size_t i = 0; i < front; ++i) out.emplace_back(i, i);
  for (const auto& [i, j] : middle) out.emplace_back(front + i, front + j);
  for (std::size_t i = back; i > 0; --i) out.emplace_back(a.size() - i, b.size() - i);
  return out;
}

}  // namespace memwall
