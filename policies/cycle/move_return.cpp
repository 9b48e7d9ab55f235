#include "policies/cycle/move_passes.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace memwall {
namespace {

// What one turn leaves to the next. Times are of the next one's.
struct TurnCarry {
  std::vector<Time> out_free, in_free;    // by path
  std::vector<Time> copied;               // by version: when its copy out is done
  std::map<std::int64_t, Time> arrivals;  // by slot: when all is back that it touches, of what is on its way
  std::vector<std::pair<std::uint32_t, std::int32_t>>
      fetched;  // moves, and their slots: back earlier than the turn begins
};

// The second pass: when what is away comes back, through one turn.
class Return {
 public:
  // `carry`: of a turn that was run before; none: this one is run for what it leaves.
  Return(ScheduleTable& table, const std::vector<std::int64_t>& latest, MovePlan& plan, const TurnCarry* carry)
      : t_(table),
        latest_(latest),
        plan_(plan),
        rehearses_(carry == nullptr),
        begins_in_(t_.cycle.size()),
        copies_in_(begins_in_),
        absent_(table.links.paths.size()),
        decided_(plan.moves.size(), false),
        out_free_(table.links.paths.size()),
        in_free_(out_free_) {
    copies_.assign(t_.cycle.versions(), {});
    const auto& live = t_.cycle.live();
    first_ = (std::max_element(live.begin(), live.end()) - live.begin() + 1) % t_.turn;
    for (std::uint32_t m = 0; m < plan.moves.size(); ++m) {
      const PlannedMove& move = plan.moves[m];
      begins_in_[place(t_.gap(move.gap).begin)].push_back(m);
      if (move.copy == PlannedMove::kNoCopy) continue;
      copies_in_[place(move.copy)].push_back(m);
      // The turn before has issued it.
      const std::uint32_t version = t_.gap(move.gap).version;
      copies_[version] = {carry == nullptr ? Time{} : carry->copied[version], first_ - 1, m};
    }
    if (carry != nullptr) take(*carry);
  }

  void run() {
    for (std::uint32_t m = 0; m < plan_.moves.size(); ++m) {
      if (!comes_back(m)) continue;
      const PlannedMove& move = plan_.moves[m];
      for (const std::int64_t shift : {std::int64_t{0}, t_.turn})
        if (!decided_[m] && move.drop - shift < first_ && first_ <= end(m) - shift)
          absent_[plan_.moves[m].path].insert({end(m) - shift, m});
    }
    for (std::int64_t slot = first_; slot < first_ + t_.turn; ++slot) run_slot(slot);
    // Back right where it is touched: in a turn whose drop comes after the last slot of this pass.
    for (const auto& absent : absent_)
      for (const auto& [at, m] : absent) plan_.fetch_order.push_back(m);
  }

  TurnCarry carry() const {
    TurnCarry carry;
    const auto later = [&](Time time) { return time == kNever ? kNever : std::max(Time{}, time - now_); };
    for (const Time free : out_free_) carry.out_free.push_back(later(free));
    for (const Time free : in_free_) carry.in_free.push_back(later(free));
    for (const Copy& copy : copies_) carry.copied.push_back(later(copy.done));
    for (auto it = arrivals_.lower_bound(first_ + t_.turn); it != arrivals_.end(); ++it)
      carry.arrivals[it->first - t_.turn] = later(it->second);
    carry.fetched = fetched_again_;
    return carry;
  }

 private:
  struct Leaving {
    std::uint32_t move = 0;
    std::int64_t shift = 0;  // of its gap's count
  };
  struct Copy {
    Time done{};
    std::int64_t slot = 0;  // in which it was issued
    std::uint32_t move = 0;  // that makes it
  };
  void take(const TurnCarry& carry) {
    out_free_ = carry.out_free, in_free_ = carry.in_free;
    arrivals_ = carry.arrivals;
    for (const auto& [m, slot] : carry.fetched) {
      decided_[m] = true;
      plan_.moves[m].fetch = slot;
      t_.tree.add(slot, end(m), t_.storage(plan_.moves[m].gap).held);
      plan_.fetch_order.push_back(m);
    }
  }
  std::size_t place(std::int64_t slot) const { return t_.place(slot); }
  std::int64_t end(std::uint32_t m) const { return t_.gap(plan_.moves[m].gap).end; }
  bool comes_back(std::uint32_t m) const {
    const CycleGap& gap = t_.gap(plan_.moves[m].gap);
    return gap.needs_content && gap.returns;
  }

  void run_slot(std::int64_t slot) {
    for (const std::uint32_t m : copies_in_[place(slot)])
      if (place(plan_.moves[m].copy) == place(slot)) issue(m, slot);
    for (const std::uint32_t m : begins_in_[place(slot)])
      leaving_.push_back({m, slot - t_.gap(plan_.moves[m].gap).begin});
    leave(slot);
    // What this slot touches; its memory is counted from here on.
    for (auto& absent : absent_)
      while (!absent.empty() && absent.begin()->first == slot) fetch(absent.begin(), slot);
    now_ = std::max(now_, needed_);
    const Time end = now_ + t_.times[place(slot)];
    // Slower paths first: they have less time to lose.
    for (std::size_t path = in_free_.size(); path-- > 0;)
      while (in_free_[path] < end && fetch_next(slot, static_cast<std::uint8_t>(path))) {
      }
    now_ = end;
    needed_ = Time{};
    if (const auto next = arrivals_.find(slot + 1); next != arrivals_.end()) needed_ = next->second;
  }

  // Memory is given up as soon as the copy is done, and no earlier than the memory is needed: until then nothing waits.
  void leave(std::int64_t slot) {
    // Most slots: none does.
    if (std::none_of(leaving_.begin(), leaving_.end(), [&](const Leaving& one) { return leaves_at(one, slot); }))
      return;
    std::stable_sort(leaving_.begin(), leaving_.end(),
                     [&](const Leaving& a, const Leaving& b) { return done(a) > done(b); });
    std::vector<Leaving> stay;
    for (const Leaving& one : leaving_) {
      PlannedMove& move = plan_.moves[one.move];
      const Bytes held = t_.storage(move.gap).held;
      const std::int64_t planned = move.drop + one.shift;
      const std::int64_t away_until = back_already(end(one.move), one.move) + one.shift;
      const bool last = slot + 1 >= std::min(first_ + t_.turn, away_until);
      if (done(one) > now_ && !last) {
        if (slot < planned) {
          stay.push_back(one);
          continue;
        }
        if (t_.tree.at(slot) + held <= t_.budget) {
          t_.tree.add(slot, slot + 1, held);
          move.drop = static_cast<std::int32_t>(slot + 1 - one.shift);
          stay.push_back(one);
          continue;
        }
      }
      now_ = std::max(now_, done_at_once(one, slot));
      t_.tree.add(slot, planned, -held);
      move.drop = static_cast<std::int32_t>(slot - one.shift);
      if (!comes_back(one.move))
        plan_.fetch_order.push_back(one.move);  // without a copy
      else if (rehearses_ || !decided_[one.move])
        absent_[move.path].insert({end(one.move) + one.shift, one.move});
    }
    leaving_ = std::move(stay);
  }

  // Is anything to be decided about it in the slot?
  bool leaves_at(const Leaving& one, std::int64_t slot) const {
    const std::int64_t away_until = back_already(end(one.move), one.move) + one.shift;
    return done(one) <= now_ || slot >= plan_.moves[one.move].drop + one.shift ||
           slot + 1 >= std::min(first_ + t_.turn, away_until);
  }

  // The copy out of the move's content begins when the link is free.
  void issue(std::uint32_t m, std::int64_t slot) {
    const CycleGap& gap = t_.gap(plan_.moves[m].gap);
    const std::uint8_t path = plan_.moves[m].path;
    out_free_[path] = std::max(out_free_[path], now_) + t_.out(plan_.moves[m].gap, path);
    copies_[gap.version].done = out_free_[path];
    copies_[gap.version].slot = slot;
  }

  // When the copy of its content is out: of this turn's content, not of that of the turn before.
  Time done(const Leaving& one) const {
    const CycleGap& gap = t_.gap(plan_.moves[one.move].gap);
    if (!gap.needs_copy) return Time{};
    const Copy& copy = copies_[gap.version];
    return copy.slot > gap.written + one.shift ? copy.done : kNever;
  }

  // It has to leave before its copy would have been issued: that one comes first.
  Time done_at_once(const Leaving& one, std::int64_t slot) {
    const Time known = done(one);
    if (known != kNever) return known;
    const Copy& copy = copies_[t_.gap(plan_.moves[one.move].gap).version];
    PlannedMove& owner = plan_.moves[copy.move];
    const CycleGap& gap = t_.gap(plan_.moves[one.move].gap);
    const std::int64_t written = gap.written + one.shift;
    owner.copy = static_cast<std::int32_t>(slot - written + t_.gap(owner.gap).written);
    issue(copy.move, slot);
    return copies_[gap.version].done;
  }

  bool fetch_next(std::int64_t slot, std::uint8_t path) {
    std::uint32_t asked = 0;
    const auto& absent = absent_[path];
    for (auto it = absent.begin(); it != absent.end() && asked < t_.settings.look_ahead; ++it) {
      ++asked;
      const std::uint32_t g = plan_.moves[it->second].gap;
      const Bytes held = t_.storage(g).held;
      // What could come later leaves memory to what a slower path brings next.
      const bool early = path == 0 && slot < latest_[g] + it->first - t_.gap(g).end;
      const Bytes reserved = early ? next_of_slower() : 0;
      // Once it is back, it stays until its touch.
      if (t_.tree.highest(slot, back_already(it->first, it->second)) + held + reserved > t_.budget) continue;
      fetch(it, slot);
      return true;
    }
    return false;
  }

  // From which slot on its memory is counted for its touch in slot `at`.
  std::int64_t back_already(std::int64_t at, std::uint32_t m) const {
    return decided_[m] ? plan_.moves[m].fetch + at - end(m) : at;
  }

  // The one that is used first of what another path than the first brings back.
  Bytes next_of_slower() const {
    std::pair<std::int64_t, std::uint32_t> next{std::numeric_limits<std::int64_t>::max(), 0};
    for (std::size_t path = 1; path < absent_.size(); ++path)
      if (!absent_[path].empty()) next = std::min(next, *absent_[path].begin());
    return next.first == std::numeric_limits<std::int64_t>::max() ? 0 : t_.storage(plan_.moves[next.second].gap).held;
  }

  void fetch(std::set<std::pair<std::int64_t, std::uint32_t>>::iterator it, std::int64_t slot) {
    const auto [at, m] = *it;
    absent_[plan_.moves[m].path].erase(it);
    const std::int64_t back = back_already(at, m);
    PlannedMove& move = plan_.moves[m];
    const std::int64_t shift = at - end(m);
    Time& free = in_free_[move.path];
    free = std::max(free, now_) + t_.in(move.gap, move.path);
    if (at == slot)
      needed_ = std::max(needed_, free);
    else
      arrivals_[at] = std::max(arrivals_[at], free);
    move.fetch = static_cast<std::int32_t>(std::max<std::int64_t>(slot - shift, move.drop + 1));
    if (move.fetch + shift < back) t_.tree.add(move.fetch + shift, back, t_.storage(move.gap).held);
    if (decided_[m]) fetched_again_.emplace_back(m, move.fetch);
    decided_[m] = true;
    plan_.fetch_order.push_back(m);
  }

  ScheduleTable& t_;
  const std::vector<std::int64_t>& latest_;
  MovePlan& plan_;
  const bool rehearses_;
  std::int64_t first_ = 0;  // the slot behind the highest, where most is away
  std::vector<std::vector<std::uint32_t>> begins_in_, copies_in_;  // by slot
  std::vector<Leaving> leaving_;  // in their gaps, not away yet
  std::vector<Copy> copies_;  // by version
  // By path: the slot that touches it next, and the move.
  std::vector<std::set<std::pair<std::int64_t, std::uint32_t>>> absent_;
  std::vector<bool> decided_;  // by move
  std::vector<std::pair<std::uint32_t, std::int32_t>> fetched_again_;  // in a rehearsal: for the turn behind it
  std::map<std::int64_t, Time> arrivals_;  // by slot: when all is back that it touches
  std::vector<Time> out_free_, in_free_;  // by path
  Time now_{}, needed_{};
};

}  // namespace

void place_returns(ScheduleTable& table, const std::vector<std::int64_t>& latest, MovePlan& plan) {
  ScheduleTable first_table = table;
  MovePlan first_plan = plan;
  Return rehearsal(first_table, latest, first_plan, nullptr);
  rehearsal.run();
  const TurnCarry carry = rehearsal.carry();
  Return(table, latest, plan, &carry).run();
}

}  // namespace memwall
