#include "policies/cycle/excess_tree.h"

#include <algorithm>
#include <limits>

namespace memwall {
namespace {

constexpr Bytes kNone = std::numeric_limits<Bytes>::max() / 4;

}  // namespace

ExcessTree::ExcessTree(const std::vector<Bytes>& live, const std::vector<Duration>& times, Bytes limit)
    : times_(times), limit_(limit), slots_(live.size()), sums_(live.size() + 1, 0), marked_(live.size(), false) {
  std::size_t size = 1;
  while (size < slots_) size *= 2;
  nodes_.resize(2 * size);
  build(1, 0, slots_, live);
}

void ExcessTree::build(std::size_t node, std::size_t from, std::size_t to, const std::vector<Bytes>& live) {
  if (to - from == 1) {
    nodes_[node] = {live[from], kNone, 0};
    if (live[from] > limit_) {
      nodes_[node].lowest_over = live[from];
      count(from, true);
    }
    return;
  }
  const std::size_t middle = (from + to) / 2;
  build(2 * node, from, middle, live);
  build(2 * node + 1, middle, to, live);
  renew(node);
}

void ExcessTree::renew(std::size_t node) {
  const Node &a = nodes_[2 * node], &b = nodes_[2 * node + 1];
  nodes_[node].highest = std::max(a.highest, b.highest) + nodes_[node].added;
  const Bytes lowest = std::min(a.lowest_over, b.lowest_over);
  nodes_[node].lowest_over = lowest >= kNone ? kNone : lowest + nodes_[node].added;
}

void ExcessTree::count(std::size_t slot, bool over) {
  marked_[slot] = over;
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
  for_parts(first, end, [&](std::size_t a, std::size_t b) {
    add(1, 0, slots_, a, b, bytes);
    if (bytes > 0) mark(1, 0, slots_, a, b, 0);
  });
  if (bytes < 0) unmark(1, 0, slots_, 0);
}

void ExcessTree::add(std::size_t node, std::size_t from, std::size_t to, std::size_t first, std::size_t end,
                     Bytes bytes) {
  if (first >= to || end <= from) return;
  if (first <= from && to <= end) {
    nodes_[node].highest += bytes;
    nodes_[node].added += bytes;
    if (nodes_[node].lowest_over < kNone) nodes_[node].lowest_over += bytes;
    return;
  }
  const std::size_t middle = (from + to) / 2;
  add(2 * node, from, middle, first, end, bytes);
  add(2 * node + 1, middle, to, first, end, bytes);
  renew(node);
}

// Marked slots that are no longer over the limit. `above`: what was added to all of the node in nodes above.
void ExcessTree::unmark(std::size_t node, std::size_t from, std::size_t to, Bytes above) {
  if (nodes_[node].lowest_over >= kNone || nodes_[node].lowest_over + above > limit_) return;
  if (to - from == 1) {
    nodes_[node].lowest_over = kNone;
    return count(from, false);
  }
  const std::size_t middle = (from + to) / 2;
  unmark(2 * node, from, middle, above + nodes_[node].added);
  unmark(2 * node + 1, middle, to, above + nodes_[node].added);
  renew(node);
}

// Slots of the range over the limit that are not marked yet.
void ExcessTree::mark(std::size_t node, std::size_t from, std::size_t to, std::size_t first, std::size_t end,
                      Bytes above) {
  if (first >= to || end <= from || nodes_[node].highest + above <= limit_) return;
  if (to - from == 1) {
    if (marked_[from]) return;
    nodes_[node].lowest_over = nodes_[node].highest;
    return count(from, true);
  }
  const std::size_t middle = (from + to) / 2;
  mark(2 * node, from, middle, first, end, above + nodes_[node].added);
  mark(2 * node + 1, middle, to, first, end, above + nodes_[node].added);
  renew(node);
}

Bytes ExcessTree::highest(std::int64_t first, std::int64_t end) const {
  Bytes most = 0;
  for_parts(first, end, [&](std::size_t a, std::size_t b) { most = std::max(most, highest(1, 0, slots_, a, b)); });
  return most;
}

Bytes ExcessTree::highest(std::size_t node, std::size_t from, std::size_t to, std::size_t first,
                          std::size_t end) const {
  if (first >= to || end <= from) return 0;
  if (first <= from && to <= end) return nodes_[node].highest;
  const std::size_t middle = (from + to) / 2;
  return nodes_[node].added +
         std::max(highest(2 * node, from, middle, first, end), highest(2 * node + 1, middle, to, first, end));
}

Bytes ExcessTree::at(std::int64_t slot) const {
  const auto turn = static_cast<std::int64_t>(slots_);
  const std::int64_t rest = slot % turn;
  const auto place = static_cast<std::size_t>(rest < 0 ? rest + turn : rest);
  Bytes added = 0;
  std::size_t node = 1, from = 0, to = slots_;
  while (to - from > 1) {
    added += nodes_[node].added;
    const std::size_t middle = (from + to) / 2;
    const bool left = place < middle;
    node = 2 * node + (left ? 0 : 1);
    (left ? to : from) = middle;
  }
  return added + nodes_[node].highest;
}

Duration ExcessTree::time_over(std::int64_t first, std::int64_t end) const {
  Duration sum{};
  for_parts(first, end, [&](std::size_t a, std::size_t b) { sum += time_before(b) - time_before(a); });
  return sum;
}

bool ExcessTree::is_over(std::int64_t slot) const { return marked_[static_cast<std::size_t>(slot) % slots_]; }

std::size_t ExcessTree::find_over(std::size_t node, std::size_t from, std::size_t to, std::size_t first) const {
  if (to <= first || nodes_[node].lowest_over >= kNone) return slots_;
  if (to - from == 1) return from;
  const std::size_t middle = (from + to) / 2;
  const std::size_t left = find_over(2 * node, from, middle, first);
  return left < slots_ ? left : find_over(2 * node + 1, middle, to, first);
}

std::int64_t ExcessTree::next_over(std::int64_t slot) const {
  const auto turn = static_cast<std::int64_t>(slots_);
  if (over_ == 0) return slot + turn;
  const std::int64_t place = slot % turn;
  const std::size_t found = find_over(1, 0, slots_, static_cast<std::size_t>(place));
  if (found < slots_) return slot - place + static_cast<std::int64_t>(found);
  return slot - place + turn + static_cast<std::int64_t>(find_over(1, 0, slots_, 0));
}

}  // namespace memwall
