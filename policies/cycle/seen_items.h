// The gaps of a cycle as the bound looks at them: which may be away at a peak. Internal to policies/cycle.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

namespace memwall {

// A gap seen from one turn: what it holds may be away in slots begin <= slot < end.
struct BoundItem {
  std::int32_t slot = 0;  // written at, or used next
  std::int32_t begin = 0, end = 0;
  double bytes = 0;
  double work = 0;  // of the device, before it can leave, or until it is used
  // Of its prices, of its op alone and with what that reads and is lost from a slot on; kNoRank: none.
  std::uint32_t rank_alone = 0, rank = 0;
  std::int32_t lost_from = 0;
  std::int32_t until = 0;    // away at a peak from this slot on it is not made again
  double bytes_before = 0;   // that have been counted before, at the price of the op alone
  std::int32_t written = 0;  // of what is used next at `slot`
};
// What a walk through the windows of a peak needs of each, close together.
struct PassingItem {
  double bytes = 0, work = 0;
  std::int32_t slot = 0;
};

// Numbers 0 <= i < size in the order of key(i), equal ones in their own. Keys are slots of a few turns: they are
// counted.
template <typename Key>
std::vector<std::uint32_t> in_order_of(std::size_t size, Key key) {
  std::int32_t least = std::numeric_limits<std::int32_t>::max(), most = std::numeric_limits<std::int32_t>::min();
  for (std::uint32_t i = 0; i < size; ++i) least = std::min(least, key(i)), most = std::max(most, key(i));
  std::vector<std::uint32_t> order(size);
  if (size == 0) return order;
  std::vector<std::uint32_t> next(static_cast<std::size_t>(most - least) + 2, 0);
  for (std::uint32_t i = 0; i < size; ++i) ++next[static_cast<std::size_t>(key(i) - least) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (std::uint32_t i = 0; i < size; ++i) order[next[static_cast<std::size_t>(key(i) - least)]++] = i;
  return order;
}

inline constexpr std::int32_t kLongAgo = std::numeric_limits<std::int32_t>::min();
inline constexpr std::uint32_t kNoRank = std::numeric_limits<std::uint32_t>::max();

// Items, and of each peak those that may be away at it: a bit for each.
class SeenItems {
 public:
  // `order`: in which they stand; `peaks`: ascending.
  void gather(const std::vector<BoundItem>& items, const std::vector<std::uint32_t>& order,
              const std::vector<std::uint32_t>& peaks) {
    items_.reserve(items.size());
    for (const std::uint32_t i : order) items_.push_back(items[i]);
    for (const BoundItem& item : items_) passing_.push_back({item.bytes, item.work, item.slot});
    const std::vector<std::uint32_t> by_begin = in_order_of(items_.size(), [&](auto i) { return items_[i].begin; });
    const std::vector<std::uint32_t> by_end = in_order_of(items_.size(), [&](auto i) { return items_[i].end; });
    words_ = items_.size() / kBits + 1;
    std::vector<std::uint64_t> away(words_, 0);
    away_.reserve(words_ * peaks.size());
    auto begun = by_begin.begin(), ended = by_end.begin();
    for (const std::uint32_t peak : peaks) {
      for (; begun != by_begin.end() && items_[*begun].begin <= static_cast<std::int32_t>(peak); ++begun)
        away[*begun / kBits] |= std::uint64_t{1} << *begun % kBits;
      for (; ended != by_end.end() && items_[*ended].end <= static_cast<std::int32_t>(peak); ++ended)
        away[*ended / kBits] &= ~(std::uint64_t{1} << *ended % kBits);
      away_.insert(away_.end(), away.begin(), away.end());
    }
  }

  const BoundItem& operator[](std::size_t item) const { return items_[item]; }
  const PassingItem& passing(std::size_t item) const { return passing_[item]; }
  std::size_t size() const { return items_.size(); }
  // The first item from `item` on that may be away at the peak, by its index; size(): none.
  std::size_t next(std::size_t item, std::size_t peak) const {
    const std::uint64_t* away = away_.data() + peak * words_;
    std::size_t word = item / kBits;
    std::uint64_t bits = away[word] >> item % kBits << item % kBits;
    while (bits == 0 && ++word < words_) bits = away[word];
    return bits == 0 ? items_.size() : word * kBits + static_cast<std::size_t>(std::countr_zero(bits));
  }

  // Calls visit(item) for each item that may be away at the peak, in their order, until it gives false.
  template <typename Visit>
  void each(std::size_t peak, Visit visit) const {
    const std::uint64_t* away = away_.data() + peak * words_;
    for (std::size_t word = 0; word < words_; ++word)
      for (std::uint64_t bits = away[word]; bits != 0; bits &= bits - 1)
        if (!visit(word * kBits + static_cast<std::size_t>(std::countr_zero(bits)))) return;
  }

 private:
  static constexpr std::size_t kBits = 64;
  std::vector<BoundItem> items_;
  std::vector<PassingItem> passing_;
  std::vector<std::uint64_t> away_;  // by index of the peak
  std::size_t words_ = 0;
};

}  // namespace memwall
