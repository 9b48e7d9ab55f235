#include "policies/cycle/excess_tree.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace memwall {
namespace {

constexpr Bytes kNone = std::numeric_limits<Bytes>::max() / 4;  // no slot of the block is over the limit
constexpr std::size_t kLeastShift = 4, kMostShift = 7;

// Of blocks of about the square root's size.
std::size_t shift_for(std::size_t slots) {
  return std::clamp(static_cast<std::size_t>(std::bit_width(slots)) / 2, kLeastShift, kMostShift);
}

}  // namespace

ExcessTree::ExcessTree(const std::vector<Bytes>& live, const std::vector<Duration>& times, Bytes limit)
    : times_(times),
      limit_(limit),
      slots_(live.size()),
      shift_(shift_for(slots_)),
      live_(live),
      added_(block_of(slots_ - 1) + 1, 0),
      highest_(added_.size(), 0),
      lowest_over_(added_.size(), kNone),
      sums_(slots_ + 1, 0),
      marked_(slots_, 0) {
  for (std::size_t slot = 0; slot < slots_; ++slot)
    if (live_[slot] > limit_) count(slot, true);
  for (std::size_t block = 0; block < added_.size(); ++block) renew(block);
}

std::size_t ExcessTree::end_of(std::size_t block) const { return std::min(first_of(block + 1), slots_); }

void ExcessTree::renew(std::size_t block) {
  Bytes highest = std::numeric_limits<Bytes>::min(), lowest = kNone;
  for (std::size_t slot = first_of(block); slot < end_of(block); ++slot) {
    highest = std::max(highest, live_[slot]);
    if (marked_[slot] != 0) lowest = std::min(lowest, live_[slot]);
  }
  highest_[block] = highest;
  lowest_over_[block] = lowest;
}

// Slots of the block that have crossed the limit, by more bytes or fewer.
void ExcessTree::renew_marks(std::size_t block, bool grows) {
  const Bytes added = added_[block];
  if (grows ? highest_[block] + added <= limit_ : lowest_over_[block] >= kNone || lowest_over_[block] + added > limit_)
    return;
  bool changed = false;
  for (std::size_t slot = first_of(block); slot < end_of(block); ++slot)
    if (const bool over = live_[slot] + added > limit_; over != (marked_[slot] != 0)) count(slot, over), changed = true;
  if (changed) renew(block);
}

void ExcessTree::count(std::size_t slot, bool over) {
  marked_[slot] = over ? 1 : 0;
  over_ += over ? 1 : std::size_t(-1);
  const std::int64_t time = over ? times_[slot].count() : -times_[slot].count();
  for (std::size_t i = slot + 1; i < sums_.size(); i += i & (~i + 1)) sums_[i] += time;
}

Duration ExcessTree::time_before(std::size_t slot) const {
  std::int64_t sum = 0;
  for (std::size_t i = slot; i > 0; i -= i & (~i + 1)) sum += sums_[i];
  return Duration(sum);
}

template <typename Part>
void ExcessTree::for_parts(std::int64_t first, std::int64_t end, Part part) const {
  const auto turn = static_cast<std::int64_t>(slots_);
  if (end <= first) return;
  if (end - first >= turn) return part(std::size_t{0}, slots_);
  const std::int64_t shift = (first >= 0 ? first / turn : -((-first + turn - 1) / turn)) * turn;
  const auto a = static_cast<std::size_t>(first - shift), b = static_cast<std::size_t>(end - shift);
  part(a, std::min(b, slots_));
  if (b > slots_) part(std::size_t{0}, b - slots_);
}

void ExcessTree::add(std::int64_t first, std::int64_t end, Bytes bytes) {
  if (bytes == 0) return;
  for_parts(first, end, [&](std::size_t a, std::size_t b) {
    for (std::size_t block = block_of(a); block <= block_of(b - 1); ++block) {
      const std::size_t from = std::max(a, first_of(block)), to = std::min(b, end_of(block));
      if (from == first_of(block) && to == end_of(block)) {
        added_[block] += bytes;
      } else {
        for (std::size_t slot = from; slot < to; ++slot) live_[slot] += bytes;
        renew(block);
      }
      renew_marks(block, bytes > 0);
    }
  });
}

Bytes ExcessTree::highest(std::int64_t first, std::int64_t end) const {
  Bytes most = 0;
  for_parts(first, end, [&](std::size_t a, std::size_t b) { most = std::max(most, highest_in(a, b)); });
  return most;
}

Bytes ExcessTree::highest_in(std::size_t first, std::size_t end) const {
  Bytes most = std::numeric_limits<Bytes>::min();
  for (std::size_t block = block_of(first); block <= block_of(end - 1); ++block) {
    const std::size_t from = std::max(first, first_of(block)), to = std::min(end, end_of(block));
    if (highest_[block] + added_[block] <= most) continue;
    if (from == first_of(block) && to == end_of(block))
      most = highest_[block] + added_[block];
    else
      for (std::size_t slot = from; slot < to; ++slot) most = std::max(most, live_[slot] + added_[block]);
  }
  return most;
}

Bytes ExcessTree::at(std::int64_t slot) const {
  const auto turn = static_cast<std::int64_t>(slots_);
  const std::int64_t rest = slot % turn;
  const auto place = static_cast<std::size_t>(rest < 0 ? rest + turn : rest);
  return live_[place] + added_[block_of(place)];
}

Duration ExcessTree::time_over(std::int64_t first, std::int64_t end) const {
  Duration sum{};
  for_parts(first, end, [&](std::size_t a, std::size_t b) { sum += time_before(b) - time_before(a); });
  return sum;
}

bool ExcessTree::is_over(std::int64_t slot) const { return marked_[static_cast<std::size_t>(slot) % slots_] != 0; }

// The first slot over the limit from `first` on; slots_: none.
std::size_t ExcessTree::find_over(std::size_t first) const {
  for (std::size_t block = block_of(first); block < added_.size(); ++block) {
    if (lowest_over_[block] >= kNone) continue;
    for (std::size_t slot = std::max(first, first_of(block)); slot < end_of(block); ++slot)
      if (marked_[slot] != 0) return slot;
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
