#include "policies/cycle/slot_bytes.h"

#include <bit>
#include <limits>

namespace memwall {
namespace {

constexpr std::size_t kLeastShift = 4, kMostShift = 7;

}  // namespace

std::size_t shift_of_blocks(std::size_t slots) {
  return std::clamp(static_cast<std::size_t>(std::bit_width(slots)) / 2, kLeastShift, kMostShift);
}

SlotBytes::SlotBytes(std::vector<Bytes> bytes)
    : bytes_(std::move(bytes)), shift_(shift_of_blocks(bytes_.size())), added_(((bytes_.size() - 1) >> shift_) + 1, 0) {
  for (std::size_t block = 0; block < added_.size(); ++block)
    highest_.push_back(*std::max_element(bytes_.begin() + static_cast<std::ptrdiff_t>(block << shift_),
                                         bytes_.begin() + static_cast<std::ptrdiff_t>(end_of(block))));
}

// Slots from <= slot < to, all of the block. What grows can only raise its highest; what shrinks may have been it.
void SlotBytes::add_within(std::size_t block, std::size_t from, std::size_t to, Bytes bytes) {
  Bytes highest = std::numeric_limits<Bytes>::min();
  for (std::size_t slot = from; slot < to; ++slot) highest = std::max(highest, bytes_[slot] += bytes);
  if (bytes > 0) {
    highest_[block] = std::max(highest_[block], highest);
  } else if (highest - bytes == highest_[block]) {
    for (std::size_t slot = block << shift_; slot < from; ++slot) highest = std::max(highest, bytes_[slot]);
    for (std::size_t slot = to; slot < end_of(block); ++slot) highest = std::max(highest, bytes_[slot]);
    highest_[block] = highest;
  }
}

void SlotBytes::add(std::int64_t first, std::int64_t end, Bytes bytes) {
  for_parts_of_turn(first, end, bytes_.size(), [&](std::size_t a, std::size_t b) {
    const std::size_t head = a >> shift_, tail = (b - 1) >> shift_;
    for (std::size_t block = head; block <= tail; ++block) {
      const std::size_t from = std::max(a, block << shift_), to = std::min(b, end_of(block));
      if (from == block << shift_ && to == end_of(block))
        added_[block] += bytes;
      else
        add_within(block, from, to, bytes);
    }
  });
}

Bytes SlotBytes::highest(std::int64_t first, std::int64_t end) const {
  Bytes most = 0;
  for_parts_of_turn(first, end, bytes_.size(), [&](std::size_t a, std::size_t b) {
    const std::size_t head = a >> shift_, tail = (b - 1) >> shift_;
    for (std::size_t block = head; block <= tail; ++block) {
      const Bytes bound = highest_[block] + added_[block];
      if (bound <= most) continue;
      const std::size_t from = std::max(a, block << shift_), to = std::min(b, end_of(block));
      if (from == block << shift_ && to == end_of(block)) {
        most = bound;
      } else {
        Bytes inside = std::numeric_limits<Bytes>::min();
        for (std::size_t slot = from; slot < to; ++slot) inside = std::max(inside, bytes_[slot]);
        most = std::max(most, inside + added_[block]);
      }
    }
  });
  return most;
}

Bytes SlotBytes::at(std::int64_t slot) const {
  const auto turn = static_cast<std::int64_t>(bytes_.size());
  if (slot < 0 || slot >= turn) slot = (slot % turn + turn) % turn;
  const auto place = static_cast<std::size_t>(slot);
  return bytes_[place] + added_[place >> shift_];
}

}  // namespace memwall
