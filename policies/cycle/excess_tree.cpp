#include "policies/cycle/excess_tree.h"

#include <limits>

#include "policies/cycle/slot_bytes.h"

namespace memwall {
namespace {

constexpr Bytes kNone = std::numeric_limits<Bytes>::max() / 4;  // no slot of the block is over the limit

}  // namespace

ExcessTree::ExcessTree(const std::vector<Bytes>& live, const std::vector<Duration>& times, Bytes limit)
    : limit_(limit),
      slots_(live.size()),
      shift_(shift_of_blocks(slots_)),
      all_(slots_),
      blocks_(block_of(slots_ - 1) + 1),
      before_(blocks_.size() + 1, 0),
      within_(slots_ + 1, 0) {
  for (std::size_t slot = 0; slot < slots_; ++slot) all_[slot] = {live[slot], times[slot].count()};
  for (std::size_t block = 0; block < blocks_.size(); ++block) renew(block);
  renew_sums();
}

// All that is known of the block, from its slots.
void ExcessTree::renew(std::size_t block) {
  Block& b = blocks_[block];
  const Bytes limit = limit_ - b.added;
  Bytes highest = std::numeric_limits<Bytes>::min(), lowest = kNone;
  std::int64_t time = 0;
  std::size_t over = 0;
  for (std::size_t slot = first_of(block); slot < end_of(block); ++slot) {
    const Slot& s = all_[slot];
    within_[slot] = time;
    highest = std::max(highest, s.live);
    const bool is_over = s.live > limit;
    lowest = std::min(lowest, is_over ? s.live : kNone);
    time += is_over ? s.time : 0;
    over += is_over ? 1 : 0;
  }
  over_ += over - b.over;
  b.highest = highest, b.lowest_over = lowest, b.time_over = time, b.over = over;
}

void ExcessTree::renew_sums() {
  std::int64_t sum = 0;
  for (std::size_t block = 0; block < blocks_.size(); ++block) before_[block] = sum, sum += blocks_[block].time_over;
  before_.back() = sum;
  // A slot behind the last is asked for as the end of a range: it stands in the last block, or in none.
  within_.back() = block_of(slots_) < blocks_.size() ? blocks_.back().time_over : 0;
}

// Has a slot of the block crossed the limit, as all of it got more bytes or fewer?
bool ExcessTree::crosses(std::size_t block, bool grows) const {
  const Block& b = blocks_[block];
  if (!grows) return b.lowest_over < kNone && b.lowest_over + b.added <= limit_;
  return b.over < end_of(block) - first_of(block) && b.highest + b.added > limit_;
}

void ExcessTree::add(std::int64_t first, std::int64_t end, Bytes bytes) {
  if (bytes == 0) return;
  bool is_changed = false;
  for_parts_of_turn(first, end, slots_, [&](std::size_t a, std::size_t b) {
    for (std::size_t block = block_of(a); block <= block_of(b - 1); ++block) {
      const std::size_t from = std::max(a, first_of(block)), to = std::min(b, end_of(block));
      const std::int64_t before = blocks_[block].time_over;
      if (from == first_of(block) && to == end_of(block)) {
        blocks_[block].added += bytes;
        if (crosses(block, bytes > 0)) renew(block);
      } else {
        for (std::size_t slot = from; slot < to; ++slot) all_[slot].live += bytes;
        renew(block);
      }
      is_changed |= blocks_[block].time_over != before;
    }
  });
  if (is_changed) renew_sums();
}

Bytes ExcessTree::highest(std::int64_t first, std::int64_t end) const {
  Bytes most = 0;
  for_parts_of_turn(first, end, slots_, [&](std::size_t a, std::size_t b) { most = std::max(most, highest_in(a, b)); });
  return most;
}

Bytes ExcessTree::highest_in(std::size_t first, std::size_t end) const {
  Bytes most = std::numeric_limits<Bytes>::min();
  for (std::size_t block = block_of(first); block <= block_of(end - 1); ++block) {
    const Block& b = blocks_[block];
    const std::size_t from = std::max(first, first_of(block)), to = std::min(end, end_of(block));
    if (b.highest + b.added <= most) continue;
    if (from == first_of(block) && to == end_of(block))
      most = b.highest + b.added;
    else
      for (std::size_t slot = from; slot < to; ++slot) most = std::max(most, all_[slot].live + b.added);
  }
  return most;
}

Bytes ExcessTree::at(std::int64_t slot) const {
  const auto turn = static_cast<std::int64_t>(slots_);
  if (slot < 0 || slot >= turn) slot = (slot % turn + turn) % turn;
  const auto place = static_cast<std::size_t>(slot);
  return all_[place].live + blocks_[block_of(place)].added;
}

Duration ExcessTree::time_over(std::int64_t first, std::int64_t end) const {
  std::int64_t sum = 0;
  for_parts_of_turn(first, end, slots_, [&](std::size_t a, std::size_t b) { sum += time_before(b) - time_before(a); });
  return Duration(sum);
}

bool ExcessTree::is_over(std::int64_t slot) const {
  const auto turn = static_cast<std::int64_t>(slots_);
  return at(slot < turn ? slot : slot % turn) > limit_;
}

// The first slot over the limit from `first` on; slots_: none.
std::size_t ExcessTree::find_over(std::size_t first) const {
  for (std::size_t block = block_of(first); block < blocks_.size(); ++block) {
    const Block& b = blocks_[block];
    if (b.over == 0) continue;
    for (std::size_t slot = std::max(first, first_of(block)); slot < end_of(block); ++slot)
      if (all_[slot].live + b.added > limit_) return slot;
  }
  return slots_;
}

std::int64_t ExcessTree::next_over(std::int64_t slot) const {
  const auto turn = static_cast<std::int64_t>(slots_);
  if (over_ == 0) return slot + turn;
  const std::int64_t place = slot % turn;
  const std::size_t found = find_over(static_cast<std::size_t>(place));
  if (found < slots_) return slot - place + static_cast<std::int64_t>(found);
  return slot - place + turn + static_cast<std::int64_t>(find_over(0));
}

}  // namespace memwall
