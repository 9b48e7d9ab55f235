// Lists of numbers for each slot, without memory of their own for each. Internal to policies/cycle.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace memwall {

// Numbers by slot, those of one slot together and ascending.
class BySlot {
 public:
  // Of 0 <= i < many the number i in slot slot_of(i); REQUIRES: that is one of the slots, or kNowhere.
  template <typename SlotOf>
  BySlot(std::size_t slots, std::size_t many, SlotOf slot_of) : begins_(slots + 1, 0) {
    for (std::uint32_t i = 0; i < many; ++i)
      if (const std::size_t slot = slot_of(i); slot != kNowhere) ++begins_[slot + 1];
    for (std::size_t slot = 0; slot < slots; ++slot) begins_[slot + 1] += begins_[slot];
    numbers_.resize(begins_.back());
    std::vector<std::uint32_t> next(begins_.begin(), begins_.end() - 1);
    for (std::uint32_t i = 0; i < many; ++i)
      if (const std::size_t slot = slot_of(i); slot != kNowhere) numbers_[next[slot]++] = i;
  }

  static constexpr std::size_t kNowhere = std::numeric_limits<std::size_t>::max();
  std::span<const std::uint32_t> operator[](std::size_t slot) const {
    return {numbers_.data() + begins_[slot], numbers_.data() + begins_[slot + 1]};
  }

 private:
  std::vector<std::uint32_t> begins_, numbers_;
};

// Chains of numbers, each in one chain at most at a time.
class Chains {
 public:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  explicit Chains(std::size_t chains) : first_(chains, kNone) {}
  void reserve(std::size_t numbers) { next_.reserve(numbers); }
  void add(std::size_t chain, std::uint32_t number) {
    if (next_.size() <= number) next_.resize(number + 1, kNone);
    next_[number] = first_[chain];
    first_[chain] = number;
  }
  std::uint32_t first(std::size_t chain) const { return first_[chain]; }
  std::uint32_t behind(std::uint32_t number) const { return next_[number]; }

 private:
  std::vector<std::uint32_t> first_, next_;
};

}  // namespace memwall
