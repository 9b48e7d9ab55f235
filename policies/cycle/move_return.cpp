#include "policies/cycle/move_passes.h"

#include <algorithm>
#include <map>
#include <set>

namespace memwall {
namespace {

// The second pass: when what is away comes back, through one turn.
class Return {
 public:
  Return(ScheduleTable& table, const std::vector<std::int64_t>& latest, MovePlan& plan)
      : t_(table), latest_(latest), plan_(plan), begins_in_(t_.cycle.size()), copies_in_(begins_in_),
      decided_(plan.moves.size(), false), out_free_(table.links.paths.size()), in_free_(out_free_) {
    copies_.assign(t_.cycle.versions(), {});
    const auto& live = t_.cycle.live();
    first_ = (std::max_element(live.begin(), live.end()) - live.begin() + 1) % t_.turn;
    for (std::uint32_t m = 0; m < plan.moves.size(); ++m) {
      const PlannedMove& move = plan.moves[m];
      begins_in_[place(t_.gap(move.gap).begin)].push_back(m);
      if (move.copy == PlannedMove::kNoCopy) continue;
      copies_in_[place(move.copy)].push_back(m);
      // The turn before has issued it.
      copies_[t_.gap(move.gap).version] = {Time{}, first_ - 1, m};
    }
  }

  void run() {
    for (std::uint32_t m = 0; m < plan_.moves.size(); ++m) {
      if (!comes_back(m)) continue;
      const PlannedMove& move = plan_.moves[m];
      for (const std::int64_t shift : {std::int64_t{0}, t_.turn})
        if (move.drop - shift < first_ && first_ <= end(m) - shift) absent_.insert({end(m) - shift, m});
    }
    for (std::int64_t slot = first_; slot < first_ + t_.turn; ++slot) run_slot(slot);
    // Back right where it is touched: in a turn whose drop comes after the last slot of this pass.
    for (const auto& [at, m] : absent_) plan_.fetch_order.push_back(m);
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
    while (!absent_.empty() && absent_.begin()->first == slot) fetch(absent_.begin(), slot);
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
    std::stable_sort(leaving_.begin(), leaving_.end(),
                     [&](const Leaving& a, const Leaving& b) { return done(a) > done(b); });
    std::vector<Leaving> stay;
    for (const Leaving& one : leaving_) {
      PlannedMove& move = plan_.moves[one.move];
      const Bytes held = t_.storage(move.gap).held;
      const std::int64_t planned = move.drop + one.shift;
      const bool last = slot + 1 >= std::min(first_ + t_.turn, end(one.move) + one.shift);
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
      else if (!decided_[one.move])
        absent_.insert({end(one.move) + one.shift, one.move});
    }
    leaving_ = std::move(stay);
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
    for (auto it = absent_.begin(); it != absent_.end() && asked < t_.settings.look_ahead; ++it) {
      if (plan_.moves[it->second].path != path) continue;
      ++asked;
      const std::uint32_t g = plan_.moves[it->second].gap;
      const Bytes held = t_.storage(g).held;
      // What could come later leaves memory to what a slower path brings next.
      const bool early = path == 0 && slot < latest_[g] + it->first - t_.gap(g).end;
      const Bytes reserved = early ? next_of_slower() : 0;
      // Once it is back, it stays until its touch.
      if (t_.tree.highest(slot, it->first) + held + reserved > t_.budget) continue;
      fetch(it, slot);
      return true;
    }
    return false;
  }

  Bytes next_of_slower() const {
    for (const auto& [at, m] : absent_)
      if (plan_.moves[m].path > 0) return t_.storage(plan_.moves[m].gap).held;
    return 0;
  }

  void fetch(std::set<std::pair<std::int64_t, std::uint32_t>>::iterator it, std::int64_t slot) {
    const auto [at, m] = *it;
    absent_.erase(it);
    decided_[m] = true;
    PlannedMove& move = plan_.moves[m];
    const std::int64_t shift = at - end(m);
    Time& free = in_free_[move.path];
    free = std::max(free, now_) + t_.in(move.gap, move.path);
    if (at == slot)
      needed_ = std::max(needed_, free);
    else
      arrivals_[at] = std::max(arrivals_[at], free);
    move.fetch = static_cast<std::int32_t>(std::max<std::int64_t>(slot - shift, move.drop + 1));
    if (move.fetch < end(m)) t_.tree.add(move.fetch + shift, at, t_.storage(move.gap).held);
    plan_.fetch_order.push_back(m);
  }

  ScheduleTable& t_;
  const std::vector<std::int64_t>& latest_;
  MovePlan& plan_;
  std::int64_t first_ = 0;  // the slot behind the highest, where most is away
  std::vector<std::vector<std::uint32_t>> begins_in_, copies_in_;  // by slot
  std::vector<Leaving> leaving_;  // in their gaps, not away yet
  std::vector<Copy> copies_;  // by version
  std::set<std::pair<std::int64_t, std::uint32_t>> absent_;  // the slot that touches it next, and the move
  std::vector<bool> decided_;  // by move
  std::map<std::int64_t, Time> arrivals_;  // by slot: when all is back that it touches
  std::vector<Time> out_free_, in_free_;  // by path
  Time now_{}, needed_{};
};

}  // namespace

void place_returns(ScheduleTable& table, const std::vector<std::int64_t>& latest, MovePlan& plan) {
  Return(table, latest, plan).run();
}

}  // namespace memwall
