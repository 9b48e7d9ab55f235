// Moves what is inactive for longest where memory lacks, to storage first and to the host else.
//
// Zhang et al. 2023, "G10: Enabling An Efficient Unified GPU Memory and Storage Architecture with Smart Tensor
// Migrations" (MICRO 2023), its planner as its simulator (platformxlab/G10, commit de2c8c6f) has it:
//   vitality   inactive intervals of each tensor between uses; of what lives from step to step across the boundary,
//   too. choice     again and again the interval of the largest area: bytes x time for which it is away where memory
//   lacks,
//              from the middle of its copy out to the middle of its copy back; then the larger bytes x time of all of
//              it. To storage where it is longer than (2 + delta) copies there, but to the host where writes to storage
//              leave nothing of the time in which that copy would run; to the host where it is longer than (2 + delta)
//              such copies; else it stays.
//   prefetch   issued as late as it is safe by a ledger of what copies leave of the links, and then, the earliest
//              first, as early as memory allows.
//   limit      0.99 of the memory.
// As described in descriptions of the algorithm and its simulator, details from memory of the paper; not checked
// against its code. Left out: its page faults and pager (what it pins in LRU order), hints to allocate and to free
// ahead (allocs stand where the program has them). Deviations: whole storages are copied, through pinned memory of the
// host on their way to storage; nothing is copied back that the next use overwrites; storages below min_bytes stay;
// copies of an interval across the boundary take their part of the ledger, each within one step (theirs are placed by
// times alone); where a machine has but one of the tiers that one is used.
#include <algorithm>
#include <queue>
#include <tuple>

#include "policies/planners/absence.h"
#include "policies/planners/planner.h"
#include "policies/planners/tier_route.h"
#include "policies/trace/rerun_rules.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr double kLimit = 0.99;  // of the memory
// Of one copy, in its rule of what is safe: of the host's link, and of storage beside it.
constexpr Duration kHostLatency = microseconds(45), kStorageLatency = microseconds(20);

struct G10Settings {
  double delta = 0.5;
  Bytes min_bytes = 0;
};

// Where the step's device memory lacks, as time: of any part of it in O(1).
class Pressure {
 public:
  Pressure(const StepProfile& profile, const AbsentMemory& memory, Bytes limit) : until_{0} {
    for (OpId op = 0; op < profile.trace().ops.size(); ++op) {
      // What takes no time on the device counts as little as can be: memory lacks there all the same.
      const bool timed = runs_on_device(profile.trace().ops[op].kind);
      const double time = timed ? std::max(1e-9, to_seconds(profile.end(op) - profile.start(op))) : 1e-9;
      until_.push_back(until_.back() + (memory.after(op) > limit ? time : 0));
    }
  }

  bool any() const { return until_.back() > 0; }
  // From op `first` to before `end`.
  double between(OpId first, OpId end) const { return first < end ? until_[end] - until_[first] : 0; }

 private:
  std::vector<double> until_;  // seconds, before each op and at the end
};

class G10 {
 public:
  G10(const StepProfile& profile, const Budget& budget, const G10Settings& settings)
      : p_(profile),
        limit_(static_cast<Bytes>(kLimit * static_cast<double>(budget.device))),
        settings_(settings),
        ledger_(profile),
        memory_(profile),
        pressure_(profile, memory_, limit_) {
    for (const char* tier : {"host", "nvme"})
      if (auto route = TierRoute::find(profile.machine(), tier)) routes_.push_back(*std::move(route));
    if (routes_.empty())
      throw UsageError("Policy 'g10' copies to tiers 'host' and 'nvme'; machine '" + profile.machine().name +
                       "' has neither with a way from 'hbm' there and back.");
  }

  MemoryPlan planned() {
    choose();
    prefetch_early();
    MemoryPlan plan;
    for (const TierRoute& route : routes_) plan.tiers.push_back(route.style());
    std::vector<Absence> absences;
    for (const Placed& placed : chosen_) absences.push_back(placed.absence);
    plan.storages = decisions_of(std::move(absences));
    return plan;
  }

 private:
  // When its copies run, and what it is worth. Times behind the end of the step are in the next.
  struct Placed {
    Absence absence;
    Ledger::Span out, back;
    std::optional<RoutedCopy> reserved_out{}, reserved_back{};  // the same in the ledger; nothing: no link has room
    double area = 0;                                            // bytes x seconds; 0 without both
  };
  // The largest area first, then the larger bytes x time of all of it.
  struct Ranked {
    double area = 0, whole = 0;
    const Gap* gap = nullptr;
    std::size_t number = 0;
    bool operator<(const Ranked& other) const {
      return std::tuple(area, whole, other.number) < std::tuple(other.area, other.whole, number);
    }
  };

  Bytes bytes(const Gap& gap) const { return p_.trace().storages[gap.storage].bytes; }
  bool is_storage(std::uint8_t tier) const { return routes_[tier].style().tier_class == TierClass::storage; }

  // Is the interval longer than what its copies need, with something to spare?
  bool is_safe(const Gap& gap, std::uint8_t tier) const {
    const double copy = static_cast<double>(bytes(gap)) / routes_[tier].rate_out(p_.machine());
    const Duration latency = kHostLatency + (is_storage(tier) ? kStorageLatency : Duration{});
    return to_seconds(gap.length()) > (2 + settings_.delta) * (to_seconds(latency) + copy);
  }

  // By the length of the interval alone; nothing where it is too short for each.
  std::optional<std::uint8_t> tier_by_length(const Gap& gap) const {
    for (std::uint8_t tier = static_cast<std::uint8_t>(routes_.size()); tier-- > 0;)
      if (is_safe(gap, tier)) return tier;
    return std::nullopt;
  }

  // --- when copies run

  // Across the boundary each copy lies in one step, as soon (as late) as links have room: the next is like this one.
  Placed placed_at(const Gap& gap, std::uint8_t tier) const {
    Placed placed;
    placed.absence.gap = gap;
    placed.absence.tier = tier;
    const TierRoute& route = routes_[tier];
    const Time end = p_.step_time(), none{};
    placed.reserved_out = route.earliest_out(ledger_, bytes(gap), gap.begin);
    placed.reserved_back = route.latest_back(ledger_, bytes(gap), gap.wraps ? gap.end - end : gap.end);
    Time out_by = none, back_by = gap.wraps ? end : none;
    if (gap.wraps && !placed.reserved_out) {
      placed.reserved_out = route.earliest_out(ledger_, bytes(gap), none);
      out_by = end;
    }
    if (gap.wraps && !placed.reserved_back) {
      placed.reserved_back = route.latest_back(ledger_, bytes(gap), end);
      back_by = none;
    }
    if (!placed.reserved_out || !placed.reserved_back) return placed;
    placed.out = {placed.reserved_out->begin() + out_by, placed.reserved_out->end() + out_by};
    placed.back = {placed.reserved_back->begin() + back_by, placed.reserved_back->end() + back_by};
    placed.area = static_cast<double>(p_.held(gap.storage)) * pressure_during(placed);
    return placed;
  }

  static Time middle(const Ledger::Span& span) { return span.begin + (span.end - span.begin) / 2; }

  double pressure_during(const Placed& placed) const {
    const Time from = middle(placed.out), to = middle(placed.back), end = p_.step_time();
    if (from >= to) return 0;
    if (to <= end) return pressure_.between(p_.op_at(from), p_.op_at(to));
    if (from >= end) return pressure_.between(p_.op_at(from - end), p_.op_at(to - end));
    const auto ops = static_cast<OpId>(p_.trace().ops.size());
    return pressure_.between(p_.op_at(from), ops) + pressure_.between(0, p_.op_at(to - end));
  }

  // Before the first op that begins once the copy out has left, and before the one that runs as the copy back begins.
  // False: it would be back by then.
  bool find_ops(Placed& placed) const {
    Absence& a = placed.absence;
    const Time end = p_.step_time();
    const auto ops = static_cast<OpId>(p_.trace().ops.size());
    Time left = placed.out.end, back = placed.back.begin;
    if (left >= back) return false;
    const OpId first = last_of_graph(p_.trace(), a.gap.after) + 1;
    const OpId last = a.gap.wraps ? ops - 1 : a.gap.before;
    a.fetched_next = a.gap.wraps && back >= end;
    a.dropped_next = a.gap.wraps && left >= end;
    if (a.dropped_next) left -= end;
    if (a.fetched_next) back -= end;
    const OpId none_before = a.dropped_next ? first_place(p_.trace()) : first;
    const OpId dropped = std::min(p_.op_at(left), ops - 1);
    a.dropped = std::max(none_before, insertion_point(p_.trace(), dropped));
    const OpId none_behind = a.fetched_next ? a.gap.before : last;
    a.fetched = std::min(p_.op_running_at(back), none_behind);
    if (placed.out.begin >= end && a.dropped_next)
      a.copied = {std::clamp(p_.op_running_at(placed.out.begin - end), first_place(p_.trace()), a.dropped), false, 0};
    if (a.crosses()) a.fetched = std::max(a.fetched, first_place(p_.trace()));
    return a.dropped <= (a.dropped_next ? a.gap.before : last) && (a.crosses() || a.dropped < a.fetched);
  }

  // --- choice

  std::optional<Ranked> ranked(const Gap& gap, std::size_t number) const {
    const auto tier = tier_by_length(gap);
    if (!tier) return std::nullopt;
    double area = placed_at(gap, *tier).area;
    if (area == 0 && is_storage(*tier) && has_host()) area = placed_at(gap, kHost).area;
    if (area == 0) return std::nullopt;
    return Ranked{area, static_cast<double>(p_.held(gap.storage)) * to_seconds(gap.length()), &gap, number};
  }

  bool has_host() const { return routes_.front().style().tier_class == TierClass::host; }

  bool has_room(const Gap& gap, std::uint8_t tier) const {
    return ledger_.has_room(routes_[tier].tier(), bytes(gap), gap.wraps ? Time{} : gap.begin,
                            gap.wraps ? Time{p_.step_time()} : gap.end);
  }

  // Writes to storage leave nothing of the time in which the copy would run if they were idle.
  bool is_full(const Placed& placed) const {
    const Gap& gap = placed.absence.gap;
    const Duration alone = routes_[placed.absence.tier].alone_out(ledger_, bytes(gap));
    if (!placed.reserved_out || !placed.reserved_back) return true;
    const Duration waited = placed.reserved_out->legs.back().begin - placed.reserved_out->begin();
    return placed.out.begin + waited >= gap.begin + alone;
  }

  // To storage, or to the host in its place; nothing where neither has room.
  std::optional<Placed> routed(const Gap& gap, std::uint8_t tier) const {
    Placed placed = placed_at(gap, tier);
    if (is_storage(tier) && has_host() && has_room(gap, kHost) && (is_full(placed) || !has_room(gap, tier)))
      return placed_at(gap, kHost);
    if (!has_room(gap, tier)) return std::nullopt;
    return placed;
  }

  // It is chosen where it is away for a while. Did it leave?
  bool take(const Gap& gap) {
    auto placed = routed(gap, *tier_by_length(gap));
    if (!placed || placed->area == 0 || !find_ops(*placed)) return false;
    const TierRoute& route = routes_[placed->absence.tier];
    route.reserve_out(ledger_, bytes(gap), *placed->reserved_out);
    route.reserve_back(ledger_, bytes(gap), *placed->reserved_back);
    ledger_.hold(route.tier(), bytes(gap), gap.wraps ? Time{} : gap.begin, gap.wraps ? Time{p_.step_time()} : gap.end);
    memory_.take_away(placed->absence);
    pressure_ = Pressure(p_, memory_, limit_);
    chosen_.push_back(*std::move(placed));
    return true;
  }

  // An area only becomes smaller as more is chosen: what was the largest, and still has its worth, is the largest.
  void choose() {
    std::priority_queue<Ranked> queue;
    std::size_t number = 0;
    for (const Gap& gap : p_.gaps())
      if (may_leave(p_, gap.storage) && bytes(gap) >= settings_.min_bytes)
        if (const auto one = ranked(gap, number++)) queue.push(*one);
    while (!queue.empty() && pressure_.any()) {
      const Ranked top = queue.top();
      queue.pop();
      const auto now = ranked(*top.gap, top.number);
      if (!now) continue;
      if (now->area < top.area)
        queue.push(*now);
      else
        take(*top.gap);
    }
  }

  void prefetch_early() {
    std::vector<Placed*> order;
    for (Placed& placed : chosen_) order.push_back(&placed);
    std::stable_sort(order.begin(), order.end(), [](const Placed* a, const Placed* b) {
      return std::tuple(a->absence.fetched, a->back.begin) < std::tuple(b->absence.fetched, b->back.begin);
    });
    for (Placed* placed : order) memory_.fetch_early(placed->absence, limit_);
  }

  static constexpr std::uint8_t kHost = 0;
  const StepProfile& p_;
  const Bytes limit_;
  const G10Settings settings_;
  std::vector<TierRoute> routes_;  // as the plan's tiers; the host before storage
  Ledger ledger_;
  AbsentMemory memory_;
  Pressure pressure_;
  std::vector<Placed> chosen_;
};

const RegisterPlanner registered_g10{
    {.name = "g10",
     .sentence = "moves what is inactive for long to storage or the host, the largest bytes x time first (Zhang et al. "
                 "2023)",
     .parameters = {number("delta", 0.5, {0, 1000}, "",
                           "an interval is long enough for 2 + delta copies of its storage, or it stays."),
                    bytes("min_bytes", "1MiB", 0, "smaller storages stay.")},
     .make = [](const PolicyArguments& arguments) -> Planner {
       const G10Settings settings{arguments.number("delta"), arguments.bytes("min_bytes")};
       return [settings](const StepProfile& profile, const Budget& budget, const Machine&, const Pricer&) {
         return G10(profile, budget, settings).planned();
       };
     },
     .remark = [](const StepProfile&, const MemoryPlan&) -> std::string {
       return "it moves what links have time for; G10 leaves the rest to its pager, which is not part of this plan.";
     }}};

}  // namespace
}  // namespace memwall
