#include "policies/cycle/whole_gaps.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <span>

#include "policies/cycle/needed_bytes.h"

namespace memwall {
namespace {

// Events of a slot that matters: the slot before has ended, what leaves before it has left, what it uses is back.
constexpr std::int32_t kEnded = 0, kLeft = 1, kBack = 2, kEvents = 3;
// Slots still over the budget whose windows are looked at: those over it by most.
constexpr std::size_t kMostPeaks = 8;
// Where the largest gaps alone are to be chosen, this part of what is over the budget has to be left to them.
constexpr double kLeastLeft = 0.5;
// Of so many gaps the sums of their bytes are compared one by one.
constexpr std::size_t kMostSums = 64;

// Gaps that `are` are away for nothing, as long as they can be.
template <typename Are>
void leave_for_nothing(const StepCycle& cycle, Are are, MovingProblem& problem) {
  const std::size_t turn = cycle.size();
  std::vector<Bytes> change(turn + 1, 0);
  for (std::size_t g = 0; g < cycle.gaps().size(); ++g) {
    if (!are(g)) continue;
    const CycleGap& gap = cycle.gaps()[g];
    const auto begin = static_cast<std::size_t>(gap.begin), end = static_cast<std::size_t>(gap.end);
    change[begin] += problem.bytes[g];
    change[std::min(end, turn)] -= problem.bytes[g];
    if (end > turn) change[0] += problem.bytes[g], change[end - turn] -= problem.bytes[g];
    problem.bytes[g] = 0;
  }
  Bytes away = 0;
  for (std::size_t k = 0; k < turn; ++k) problem.excess[k] -= away += change[k];
}

void leave_for_nothing(const StepCycle& cycle, MovingProblem& problem) {
  leave_for_nothing(
      cycle, [&](std::size_t g) { return costs_nothing(cycle.gaps()[g]); }, problem);
}

// Bytes of the gaps that could be away in a slot over the budget, the largest first.
std::vector<Bytes> covering_bytes(const StepCycle& cycle, const MovingProblem& problem) {
  const std::size_t turn = cycle.size();
  std::vector<std::uint32_t> over(2 * turn + 1, 0);  // slots over the budget up to there, in two turns
  for (std::size_t k = 0; k < 2 * turn; ++k) over[k + 1] = over[k] + (problem.excess[k % turn] > 0 ? 1 : 0);
  std::vector<Bytes> all;
  for (std::size_t g = 0; g < cycle.gaps().size(); ++g) {
    const CycleGap& gap = cycle.gaps()[g];
    if (problem.bytes[g] > 0 && over[static_cast<std::size_t>(gap.end)] > over[static_cast<std::size_t>(gap.begin)])
      all.push_back(problem.bytes[g]);
  }
  std::ranges::sort(all, std::greater<>());
  return all;
}

// Sums of some of the bytes so far: which is the least that is enough?
class SumsOfBytes {
 public:
  SumsOfBytes() { sums_[0] = 0; }
  void add(Bytes bytes) {
    is_full_ = is_full_ || 2 * size_ > kMostSums;
    if (is_full_) return;
    for (std::size_t i = 0; i < size_; ++i) sums_[size_ + i] = sums_[i] + bytes;
    size_ *= 2;
  }
  Bytes least(Bytes needed) const {
    if (is_full_) return needed;
    Bytes least = std::numeric_limits<Bytes>::max();
    for (std::size_t i = 0; i < size_; ++i)
      if (sums_[i] >= needed) least = std::min(least, sums_[i]);
    return least;
  }

 private:
  std::array<Bytes, kMostSums> sums_;
  std::size_t size_ = 1;
  bool is_full_ = false;
};

}  // namespace

MovingProblem problem_of_plans(const StepCycle& cycle, Bytes budget) {
  MovingProblem problem;
  for (const Bytes live : cycle.live()) problem.excess.push_back(live - budget);
  for (const CycleGap& gap : cycle.gaps()) problem.bytes.push_back(cycle.storages()[gap.storage].held);
  for (const CycleSlot& slot : cycle.slots()) problem.seconds.push_back(to_seconds(slot.time));
  leave_for_nothing(cycle, problem);
  return problem;
}

MovingProblem problem_of_bound(const StepCycle& cycle, Bytes budget) {
  MovingProblem problem;
  for (const Bytes needed : needed_bytes(cycle)) problem.excess.push_back(needed - budget);
  for (const CycleGap& gap : cycle.gaps()) problem.bytes.push_back(cycle.storages()[gap.storage].moved);
  for (const CycleSlot& slot : cycle.slots()) problem.seconds.push_back(to_seconds(slot.work));
  problem.drops_come_first = false;
  leave_for_nothing(cycle, problem);
  return problem;
}

bool relax(const StepCycle& cycle, std::size_t most_gaps, std::size_t most_slots, MovingProblem& problem) {
  const Bytes highest = *std::ranges::max_element(problem.excess);
  if (highest <= 0) return false;
  if (const std::vector<Bytes> bytes = covering_bytes(cycle, problem); bytes.size() > most_gaps)
    leave_for_nothing(
        cycle, [&](std::size_t g) { return problem.bytes[g] <= bytes[most_gaps]; }, problem);
  if (static_cast<double>(*std::ranges::max_element(problem.excess)) < kLeastLeft * static_cast<double>(highest))
    return false;
  const auto is_over = [](Bytes excess) { return excess > 0; };
  if (static_cast<std::size_t>(std::ranges::count_if(problem.excess, is_over)) <= most_slots) return true;
  for (std::size_t part = 0; part < most_slots; ++part) {
    const std::size_t turn = problem.excess.size();
    const std::span<Bytes> slots(problem.excess.begin() + static_cast<std::ptrdiff_t>(part * turn / most_slots),
                                 problem.excess.begin() + static_cast<std::ptrdiff_t>((part + 1) * turn / most_slots));
    const auto most = std::ranges::max_element(slots);
    for (auto slot = slots.begin(); slot != slots.end(); ++slot)
      if (slot != most) *slot = 0;
  }
  return true;
}

bool GapChoice::is_away(std::size_t place) const {
  const auto at = static_cast<std::int8_t>(place);
  return first >= 0 && first <= at && at <= last;
}

bool GapChoice::can_be_away(std::size_t place) const {
  if (is_away(place)) return false;
  std::size_t from = place, to = place;
  if (first >= 0)
    from = std::min(place, static_cast<std::size_t>(first)), to = std::max(place, static_cast<std::size_t>(last));
  return (kept >> from & ~std::uint64_t{0} >> (63 - (to - from))) == 0;
}

void GapChoice::leave(std::size_t place) {
  const auto at = static_cast<std::int8_t>(place);
  first = first < 0 ? at : std::min(first, at);
  last = std::max(last, at);
}

WholeGaps::WholeGaps(const StepCycle& cycle, const CycleLinks& links, const MovingProblem& problem,
                     std::size_t most_gaps, std::size_t most_slots)
    : cycle_(cycle),
      problem_(problem),
      turn_(static_cast<std::int32_t>(cycle.size())),
      out_per_byte_(std::numeric_limits<double>::infinity()),
      in_per_byte_(out_per_byte_) {
  for (std::int32_t k = 0; k < turn_; ++k)
    if (problem.excess[static_cast<std::size_t>(k)] > 0) over_.push_back(k);
  if (over_.empty() || over_.size() > std::min(kMostSlots, most_slots)) return;
  covering_.resize(over_.size());
  for (std::uint32_t g = 0; g < cycle.gaps().size() && open_.size() <= most_gaps; ++g)
    if (!costs_nothing(cycle.gaps()[g]) && problem.bytes[g] > 0) add(g, links);
  applies_ = open_.size() <= most_gaps;
  if (applies_) add_events();
}

void WholeGaps::add(std::uint32_t g, const CycleLinks& links) {
  const CycleGap& gap = cycle_.gaps()[g];
  const CyclePath& path = links.paths.front();
  const auto moved = static_cast<double>(cycle_.storages()[gap.storage].moved);
  OpenGap open{g,
               problem_.bytes[g],
               to_seconds(path.out_latency) + moved / std::min(path.out_rate, links.total_out),
               to_seconds(path.in_latency) + moved / std::min(path.in_rate, links.total_in),
               {}};
  for (const std::int32_t shift : {0, turn_})
    for (auto over = std::ranges::lower_bound(over_, gap.begin - shift); over != over_.end(); ++over) {
      if (*over + shift >= gap.end) break;
      covering_[static_cast<std::size_t>(over - over_.begin())].push_back(
          {static_cast<std::uint32_t>(open_.size()), static_cast<std::uint32_t>(open.slots.size())});
      open.slots.push_back(*over + shift);
      ++coverings_;
    }
  if (open.slots.empty()) return;
  out_per_byte_ = std::min(out_per_byte_, open.out / static_cast<double>(open.bytes));
  in_per_byte_ = std::min(in_per_byte_, open.in / static_cast<double>(open.bytes));
  open_.push_back(std::move(open));
}

void WholeGaps::add_events() {
  std::vector<bool> matters(cycle_.size(), false);
  const auto mark = [&](std::int32_t slot) { matters[in_turn(slot)] = true; };
  for (std::size_t i = 0; i < open_.size(); ++i) {
    if (gap(i).needs_copy) mark(gap(i).written + 1);
    mark(gap(i).end);
    for (const std::int32_t slot : open_[i].slots) mark(slot), mark(slot + 1);
  }
  event_.assign(cycle_.size(), -1);
  double seconds = 0;
  for (std::size_t k = 0; k < cycle_.size(); ++k) {
    if (matters[k]) {
      event_[k] = events_;
      events_ += kEvents;
      starts_.insert(starts_.end(), kEvents, seconds);
    }
    seconds += problem_.seconds[k];
  }
  if (events_ > 0) starts_.push_back(starts_.front() + seconds);
}

std::size_t WholeGaps::in_turn(std::int32_t slot) const {
  return static_cast<std::size_t>(((slot % turn_) + turn_) % turn_);
}

std::int32_t WholeGaps::dropped(const GapChoices& choices, std::size_t open) const {
  return open_[open].slots[static_cast<std::size_t>(choices[open].first)];
}

std::int32_t WholeGaps::fetched(const GapChoices& choices, std::size_t open) const {
  return open_[open].slots[static_cast<std::size_t>(choices[open].last)] + 1;
}

WholeGaps::Left WholeGaps::left_at(std::size_t over, const GapChoices& choices) const {
  Left left{problem_.excess[static_cast<std::size_t>(over_[over])], 0, over};
  for (const auto& [g, place] : covering_[over]) {
    if (choices[g].is_away(place))
      left.needed -= open_[g].bytes;
    else if (choices[g].can_be_away(place))
      left.possible += open_[g].bytes;
  }
  return left;
}

WholeGaps::Covers WholeGaps::follow(GapChoices& choices, std::uint64_t& work) const {
  for (;;) {
    bool covers = true, changed = false;
    work += coverings_;
    for (std::size_t over = 0; over < over_.size(); ++over) {
      const Left left = left_at(over, choices);
      if (left.needed <= 0) continue;
      if (left.possible < left.needed) return Covers::cannot;
      covers = false;
      for (const auto& [g, place] : covering_[over]) {
        if (left.possible - open_[g].bytes >= left.needed || !choices[g].can_be_away(place)) continue;
        choices[g].leave(place);
        changed = true;
      }
    }
    if (!changed) return covers ? Covers::all : Covers::not_yet;
  }
}

std::vector<std::pair<std::size_t, std::size_t>> WholeGaps::candidates(const GapChoices& choices,
                                                                       std::uint64_t& work) const {
  Left most;
  for (std::size_t over = 0; over < over_.size(); ++over)
    if (const Left left = left_at(over, choices); left.needed > most.needed) most = left;
  work += coverings_;
  std::vector<std::pair<std::size_t, std::size_t>> all;
  for (const auto& [g, place] : covering_[most.over])
    if (choices[g].can_be_away(place)) all.emplace_back(g, place);
  std::ranges::stable_sort(all, std::greater<>(), [&](const auto& one) { return open_[one.first].bytes; });
  return all;
}

std::int32_t WholeGaps::event(std::int32_t slot, std::int32_t kind) const {
  const std::size_t here = in_turn(slot);
  return event_[here] + (slot - static_cast<std::int32_t>(here)) / turn_ * events_ + kind;
}

std::int32_t WholeGaps::turns_of(std::int32_t event) const {
  return event >= 0 ? event / events_ : -((-event + events_ - 1) / events_);
}

std::int32_t WholeGaps::comes_back() const { return problem_.drops_come_first ? kLeft : kEnded; }

TurnCopy WholeGaps::copy(std::int32_t release, std::int32_t deadline, double seconds) const {
  const std::int32_t before = turns_of(release) * events_;
  return {release - before, deadline - before, seconds};
}

std::int32_t WholeGaps::slots_to_leave(const GapChoices& choices, std::size_t open) const {
  return dropped(choices, open) - gap(open).written;
}

CopiesOfChoice WholeGaps::copies(const GapChoices& choices, std::uint64_t& work) const {
  CopiesOfChoice copies;
  copies.turn.starts = starts_;
  std::vector<std::uint32_t>& out = copies.gaps[0];
  for (std::uint32_t g = 0; g < open_.size(); ++g) {
    if (!choices[g].is_away()) continue;
    copies.gaps[1].push_back(g);
    copies.turn.copies[1].push_back(
        copy(event(fetched(choices, g), comes_back()), event(gap(g).end, kBack), open_[g].in));
    if (!gap(g).needs_copy) continue;
    const auto same = std::ranges::find(out, gap(g).version, [&](std::uint32_t other) { return gap(other).version; });
    if (same == out.end())
      out.push_back(g);
    else if (slots_to_leave(choices, g) < slots_to_leave(choices, *same))
      *same = g;
  }
  for (const std::uint32_t g : out)
    copies.turn.copies[0].push_back(
        copy(event(gap(g).written + 1, kEnded), event(dropped(choices, g), kLeft), open_[g].out));

  std::vector<Left> peaks;
  for (std::size_t over = 0; over < over_.size(); ++over)
    if (const Left left = left_at(over, choices); left.needed > 0) peaks.push_back(left);
  work += coverings_;
  std::ranges::stable_sort(peaks, std::greater<>(), &Left::needed);
  std::vector<Passing> passing;
  for (std::size_t i = 0; i < std::min(peaks.size(), kMostPeaks); ++i)
    for (const bool is_out : {true, false}) {
      add_windows(choices, peaks[i], is_out, passing, copies);
      work += passing.size();
    }
  return copies;
}

// Does the gap's content leave before the slot, as it is chosen? For this gap or another one. `out`: those that copy.
bool WholeGaps::leaves_by(const GapChoices& choices, const std::vector<std::uint32_t>& out, std::size_t open,
                          std::int32_t slot) const {
  return std::ranges::any_of(out, [&](std::uint32_t other) {
    return gap(other).version == gap(open).version && slots_to_leave(choices, other) <= slot - gap(open).written;
  });
}

// What is over the budget at a slot has to leave before it, but for what may have left before a window; and to come
// back behind it, but for what may come back behind one. Windows of one slot and direction.
void WholeGaps::add_windows(const GapChoices& choices, const Left& left, bool out, std::vector<Passing>& passing,
                            CopiesOfChoice& copies) const {
  TurnOfCopies& turn = copies.turn;
  const std::int32_t slot = over_[left.over], peak = event(out ? slot : slot + 1, out ? kLeft : comes_back());
  passing.clear();
  for (const TurnCopy& one : turn.copies[out ? 0 : 1]) {
    // The last that is due by then; the first that is released from then on.
    const std::int32_t turns = out ? turns_of(peak - one.deadline) : -turns_of(one.release - peak);
    passing.push_back({(out ? one.release : one.deadline) + turns * events_, one.seconds, 0});
  }
  for (const auto& [g, place] : covering_[left.over]) {
    const std::int32_t here = open_[g].slots[place], shift = here - slot;
    if (!choices[g].can_be_away(place)) continue;
    const bool passes = out ? gap(g).needs_copy && !leaves_by(choices, copies.gaps[0], g, here)
                            : !choices[g].is_away() || choices[g].last < static_cast<std::int8_t>(place);
    if (!passes) continue;
    const std::int32_t end = out ? event(gap(g).written + 1 - shift, kEnded) : event(gap(g).end - shift, kBack);
    passing.push_back({end, 0, open_[g].bytes});
  }
  std::ranges::sort(passing,
                    [&](const Passing& a, const Passing& b) { return out ? a.event > b.event : a.event < b.event; });
  const double per_byte = out ? out_per_byte_ : in_per_byte_;
  Bytes outside = left.possible, inside = 0;
  double seconds = 0;
  SumsOfBytes sums;
  for (std::size_t i = 0; i < passing.size(); ++i) {
    seconds += passing[i].seconds;
    outside -= passing[i].bytes;
    if (passing[i].bytes > 0) sums.add(passing[i].bytes);
    inside += passing[i].bytes;
    if (left.needed <= outside || (i + 1 < passing.size() && passing[i + 1].event == passing[i].event)) continue;
    const std::int32_t from = out ? passing[i].event : peak, to = out ? peak : passing[i].event;
    const std::int32_t before = turns_of(from) * events_;
    // All that could pass leaves no wait?
    const double slots = turn.seconds_between(from - before, to - before);
    if (seconds + static_cast<double>(inside) * per_byte <= slots) continue;
    const auto bytes = static_cast<double>(sums.least(left.needed - outside));
    if (seconds + bytes * per_byte <= slots) continue;
    turn.windows.push_back({from - before, to - before, seconds + bytes * per_byte});
  }
}

}  // namespace memwall
