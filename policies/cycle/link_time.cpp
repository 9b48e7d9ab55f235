#include "policies/cycle/link_time.h"

#include <algorithm>
#include <bit>

namespace memwall {

LinkTime::LinkTime(const std::vector<Duration>& times)
    : slots_(static_cast<std::int64_t>(times.size())), sums_(times.size() + 1, 0), skip_(times.size(), 1),
      skip_back_(times.size(), 1) {
  for (const Duration time : times) left_.push_back(time.count());
  for (std::size_t i = 0; i < left_.size(); ++i) {
    all_ += left_[i];
    sums_[i + 1] += left_[i];
    if (const std::size_t above = (i + 1) + ((i + 1) & (~(i + 1) + 1)); above < sums_.size()) sums_[above] += sums_[i + 1];
  }
}

std::size_t LinkTime::place(std::int64_t slot) const {
  const std::int64_t rest = slot % slots_;
  return static_cast<std::size_t>(rest < 0 ? rest + slots_ : rest);
}

std::int64_t LinkTime::turns_before(std::int64_t slot) const {
  return (slot - static_cast<std::int64_t>(place(slot))) / slots_;
}

std::int64_t LinkTime::before(std::int64_t place) const {
  std::int64_t sum = 0;
  for (auto i = static_cast<std::size_t>(place); i > 0; i -= i & (~i + 1)) sum += sums_[i];
  return sum;
}

std::int64_t LinkTime::last_with(std::int64_t sum) const {
  std::size_t at = 0;
  for (std::size_t step = std::bit_floor(sums_.size() - 1); step > 0; step /= 2)
    if (at + step < sums_.size() && sums_[at + step] <= sum) sum -= sums_[at += step];
  return static_cast<std::int64_t>(at);
}

std::optional<std::int64_t> LinkTime::earliest(Duration needed, std::int64_t from, std::int64_t end) const {
  if (needed <= Duration{}) return from;
  if (needed.count() > all_) return std::nullopt;
  std::int64_t sum = before(static_cast<std::int64_t>(place(from))) + needed.count(), turn = turns_before(from) * slots_;
  if (sum > all_) sum -= all_, turn += slots_;
  const std::int64_t done = turn + last_with(sum - 1) + 1;
  return done <= end ? std::optional(done) : std::nullopt;
}

std::optional<std::int64_t> LinkTime::latest(Duration needed, std::int64_t from, std::int64_t end) const {
  if (needed <= Duration{}) return end;
  if (needed.count() > all_) return std::nullopt;
  std::int64_t sum = before(static_cast<std::int64_t>(place(end))) - needed.count(), turn = turns_before(end) * slots_;
  if (sum < 0) sum += all_, turn -= slots_;
  const std::int64_t begun = turn + std::min(last_with(sum), slots_ - 1);
  return begun >= from ? std::optional(begun) : std::nullopt;
}

void LinkTime::take(std::size_t place, std::int64_t time) {
  left_[place] -= time;
  all_ -= time;
  for (std::size_t i = place + 1; i < sums_.size(); i += i & (~i + 1)) sums_[i] -= time;
}

void LinkTime::give(const std::vector<Duration>& more) {
  for (std::size_t slot = 0; slot < more.size(); ++slot)
    if (more[slot] > Duration{}) take(slot, -more[slot].count());
  std::fill(skip_.begin(), skip_.end(), 1);
  std::fill(skip_back_.begin(), skip_back_.end(), 1);
}

void LinkTime::take_earliest(Duration needed, std::int64_t from) {
  std::int64_t open = needed.count();
  for (std::int64_t slot = from; open > 0;) {
    const std::size_t here = place(slot);
    const std::int64_t taken = std::min(open, left_[here]);
    if (taken > 0) take(here, taken), open -= taken;
    if (left_[here] > 0) return;
    const std::int64_t step = skip_[here];
    skip_[here] = step + (left_[place(slot + step)] > 0 ? 0 : skip_[place(slot + step)]);
    slot += step;
  }
}

void LinkTime::take_latest(Duration needed, std::int64_t end) {
  std::int64_t open = needed.count();
  for (std::int64_t slot = end - 1; open > 0;) {
    const std::size_t here = place(slot);
    const std::int64_t taken = std::min(open, left_[here]);
    if (taken > 0) take(here, taken), open -= taken;
    if (left_[here] > 0) return;
    const std::int64_t step = skip_back_[here];
    skip_back_[here] = step + (left_[place(slot - step)] > 0 ? 0 : skip_back_[place(slot - step)]);
    slot -= step;
  }
}

}  // namespace memwall
