#include "policies/planners/rotor_chain.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace memwall {
namespace {

constexpr double kNoSchedule = std::numeric_limits<double>::infinity();

double ps(Duration d) { return static_cast<double>(d.count()); }

void take_lower(double* to, const double* a, const double* b, double more, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const double sum = a[i] + b[i] + more;
    to[i] = sum < to[i] ? sum : to[i];
  }
}

void take_lower(double* to, double time, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = time < to[i] ? time : to[i];
}

}  // namespace

RotorTable::RotorTable(RotorChain chain, Bytes limit, std::uint32_t slots)
    : chain_(std::move(chain)),
      slot_(std::max<Bytes>(1, (limit + slots - 1) / slots)),
      slots_(limit < 0 ? 0 : static_cast<std::uint32_t>(limit / slot_)) {
  const std::size_t stages = chain_.stages.size();
  cost_.assign(stages * (stages + 1) / 2 * (slots_ + 1), kNoSchedule);
  ranges_.resize(stages * (stages + 1) / 2);
  for (std::size_t s = stages; s-- > 0;)
    for (std::size_t t = s; t < stages; ++t) {
      fill(s, t);
      note_range(s, t);
    }
}

// Parts s..t stand by s, then t: what is read for a cut in ascending order lies together.
std::size_t RotorTable::part(std::size_t s, std::size_t t) const {
  return s * chain_.stages.size() - s * (s + 1) / 2 + t;
}

void RotorTable::note_range(std::size_t s, std::size_t t) {
  const double* const cost = cost_.data() + row(s, t);
  Range& range = ranges_[part(s, t)];
  range.first = static_cast<std::uint32_t>(
      std::find_if(cost, cost + slots_ + 1, [](double time) { return time != kNoSchedule; }) - cost);
  range.enough = slots_;
  while (range.enough > range.first && cost[range.enough - 1] == cost[slots_]) --range.enough;
}

std::uint32_t RotorTable::in_slots(Bytes bytes) const {
  if (bytes <= 0) return 0;
  return bytes > slot_ * static_cast<Bytes>(slots_) ? slots_ + 1
                                                    : static_cast<std::uint32_t>((bytes + slot_ - 1) / slot_);
}

std::uint32_t RotorTable::least_for_saving(std::size_t s, std::size_t t) const {
  const RotorStage& stage = chain_.stages[s];
  const bool is_last = s == t && stage.while_last != RotorStage::kAsAgain;
  const Bytes forward =
      is_first(t) && stage.first_saving != RotorStage::kAsAgain
          ? stage.first_saving
          : input_passed(s) + (is_last ? stage.while_last : stage.while_saving) + chain_.stages[t].gradient;
  return std::max(in_slots(forward), in_slots(stage.while_backward));
}

// While stage k of s..t runs and keeps its output alone.
std::uint32_t RotorTable::least_for_passing(std::size_t s, std::size_t t, std::size_t k) const {
  const RotorStage& stage = chain_.stages[k];
  if (is_first(t) && stage.first_passing != RotorStage::kAsAgain)
    return in_slots(input_passed(s) +
                    (k > s ? chain_.stages[k - 1].output_saved + stage.first_passing : stage.first_passing_alone));
  Bytes bytes = input_passed(s) + stage.while_passing + chain_.stages[t].gradient;
  if (k > s) bytes += chain_.stages[k - 1].output_saved + chain_.stages[k - 1].output_passed;
  return in_slots(bytes);
}

// What part s..cut-1 leaves behind for the part from `cut` on: its own input, and that of the other.
std::uint32_t RotorTable::held_from(std::size_t s, std::size_t cut) const {
  return in_slots(input_passed(s) + chain_.stages[cut - 1].output_saved);
}

void RotorTable::fill(std::size_t s, std::size_t t) {
  const RotorStage& first = chain_.stages[s];
  double* const to = cost_.data() + row(s, t);
  const std::uint32_t least = least_for_saving(s, t), saved = in_slots(first.saved);
  if (s == t) {
    for (std::uint32_t m = least; m <= slots_; ++m) to[m] = ps(first.forward_last) + ps(first.backward);
    return;
  }
  const double* const rest = cost_.data() + row(s + 1, t);
  for (std::uint32_t m = std::max(least, saved); m <= slots_; ++m)
    to[m] = rest[m - saved] + (ps(first.forward) + ps(first.backward));
  double forward = 0;
  std::uint32_t passing = 0;
  for (std::size_t cut = s + 1; cut <= t; ++cut) {
    forward += ps(chain_.stages[cut - 1].forward);
    passing = std::max(passing, least_for_passing(s, t, cut - 1));
    if (passing > slots_) return;
    const std::uint32_t held = held_from(s, cut);
    const Range &later = ranges_[part(cut, t)], &before = ranges_[part(s, cut - 1)];
    const std::uint32_t from = std::max({passing, held + later.first, before.first});
    if (from > slots_) continue;
    // Nothing is gained by more than `enough` of both.
    const std::uint32_t enough = std::clamp(std::max(held + later.enough, before.enough), from, slots_);
    const double *const a = cost_.data() + row(cut, t), *const b = cost_.data() + row(s, cut - 1);
    take_lower(to + from, a + (from - held), b + from, forward, enough - from);
    take_lower(to + enough, a[enough - held] + b[enough] + forward, slots_ + 1 - enough);
  }
}

std::optional<RotorSchedule> RotorTable::schedule() const {
  const std::size_t last = chain_.stages.size() - 1;
  const double time = cost_[row(0, last) + slots_];
  if (time == kNoSchedule) return std::nullopt;
  RotorSchedule schedule;
  schedule.time = Duration(static_cast<std::int64_t>(time));
  append(0, last, slots_, schedule.steps);
  return schedule;
}

std::optional<Bytes> RotorTable::least_memory() const {
  const std::uint32_t first = ranges_[part(0, chain_.stages.size() - 1)].first;
  return first > slots_ ? std::nullopt : std::optional(slot_ * static_cast<Bytes>(first));
}

// What fill() took there, found again.
void RotorTable::append(std::size_t s, std::size_t t, std::uint32_t m, std::vector<RotorStep>& steps) const {
  using Kind = RotorStep::Kind;
  const RotorStage& first = chain_.stages[s];
  const auto add = [&](Kind kind, std::size_t stage) { steps.push_back({kind, static_cast<std::uint32_t>(stage)}); };
  const double best = cost_[row(s, t) + m];
  const std::uint32_t saved = in_slots(first.saved);
  const bool can_save = m >= std::max(least_for_saving(s, t), s == t ? 0 : saved);
  const double rest = s == t || !can_save ? 0 : cost_[row(s + 1, t) + m - saved];
  if (can_save && (s == t || rest + (ps(first.forward) + ps(first.backward)) == best)) {
    add(Kind::forward_saving, s);
    if (s < t) append(s + 1, t, m - saved, steps);
    return add(Kind::backward, s);
  }
  double forward = 0;
  std::uint32_t passing = 0;
  for (std::size_t cut = s + 1; cut <= t; ++cut) {
    forward += ps(chain_.stages[cut - 1].forward);
    passing = std::max(passing, least_for_passing(s, t, cut - 1));
    const std::uint32_t held = held_from(s, cut);
    if (m < std::max(passing, held)) continue;
    const double time = cost_[row(cut, t) + m - held] + cost_[row(s, cut - 1) + m] + forward;
    if (time != best) continue;
    for (std::size_t k = s; k < cut; ++k) add(Kind::forward, k);
    append(cut, t, m - held, steps);
    return append(s, cut - 1, m, steps);
  }
}

}  // namespace memwall
