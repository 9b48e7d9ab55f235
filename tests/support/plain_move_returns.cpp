#include "tests/support/plain_move_returns.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

namespace memwall {
namespace {

// Bytes by slot, each range slot by slot.
class PlainBytes {
 public:
  explicit PlainBytes(std::vector<Bytes> bytes) : bytes_(std::move(bytes)) {}
  void add(std::int64_t first, std::int64_t end, Bytes bytes) {
    for (std::int64_t slot = first; slot < end; ++slot) bytes_[place(slot)] += bytes;
  }
  Bytes highest(std::int64_t first, std::int64_t end) const {
    Bytes most = 0;
    for (std::int64_t slot = first; slot < end; ++slot) most = std::max(most, bytes_[place(slot)]);
    return most;
  }
  Bytes at(std::int64_t slot) const { return bytes_[place(slot)]; }

 private:
  std::size_t place(std::int64_t slot) const {
    const auto turn = static_cast<std::int64_t>(bytes_.size());
    return static_cast<std::size_t>((slot % turn + turn) % turn);
  }
  std::vector<Bytes> bytes_;
};

// What one turn leaves to the next. Times are of the next one's.
struct PlainTurnCarry {
  std::vector<Time> out_free, in_free;    // by path
  std::vector<Time> copied;               // by version: when its copy out is done
  std::map<std::int64_t, Time> arrivals;  // by slot: when all is back that it touches, of what is on its way
  std::vector<std::pair<std::uint32_t, std::int32_t>>
      fetched;  // moves, and their slots: back earlier than the turn begins
};

// The second pass: when what is away comes back, through one turn.
class PlainReturn {
 public:
  // `carry`: of a turn that was run before; none: this one is run for what it leaves.
  PlainReturn(const ScheduleTable& table, const std::vector<std::int64_t>& latest, MovePlan& plan,
              const PlainTurnCarry* carry)
      : t_(table),
        latest_(latest),
        plan_(plan),
        tree_(live_under(table.cycle, plan)),
        rehearses_(carry == nullptr),
        begins_in_(t_.cycle.size()),
        copies_in_(begins_in_),
        absent_(table.links.paths.size()),
        decided_(plan.moves.size(), false),
        out_free_(table.links.paths.size()),
        in_free_(out_free_) {
    copies_.assign(t_.cycle.versions(), {});
    of_version_.resize(t_.cycle.versions());
    due_.resize(static_cast<std::size_t>(t_.turn) + 1);
    const auto& live = t_.cycle.live();
    first_ = (std::max_element(live.begin(), live.end()) - live.begin() + 1) % t_.turn;
    for (std::uint32_t m = 0; m < plan.moves.size(); ++m) {
      const PlannedMove& move = plan.moves[m];
      begins_in_[place(t_.gap(move.gap).begin)].push_back(m);
      if (move.copy == PlannedMove::kNoCopy) continue;
      copies_in_[place(move.copy)].push_back(m);
      // Issued last in the turn before this pass: of content that is copied only within the pass, an older one.
      const std::uint32_t version = t_.gap(move.gap).version;
      const std::int64_t since = static_cast<std::int64_t>(t_.place(first_ - 1 - move.copy));
      copies_[version] = {carry == nullptr ? Time{} : carry->copied[version], first_ - 1 - since, m};
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

  PlainTurnCarry carry() const {
    PlainTurnCarry carry;
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
  using Absent = std::set<std::pair<std::int64_t, std::uint32_t>>;
  struct Leaving {
    std::uint32_t move = 0;
    std::int64_t shift = 0;  // of its gap's count
    Time done{};             // when the copy of its content is out
    bool is_late = false, has_left = false;
  };
  struct Copy {
    Time done{};
    std::int64_t slot = 0;   // in which it was issued
    std::uint32_t move = 0;  // that makes it
  };
  void take(const PlainTurnCarry& carry) {
    out_free_ = carry.out_free, in_free_ = carry.in_free;
    arrivals_ = carry.arrivals;
    for (const auto& [m, slot] : carry.fetched) {
      decided_[m] = true;
      plan_.moves[m].fetch = slot;
      tree_.add(slot, end(m), t_.storage(plan_.moves[m].gap).held);
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
    for (const std::uint32_t m : begins_in_[place(slot)]) enter(m, slot);
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

  // In its gap from the slot on. REQUIRES: the tree holds the move as it is planned.
  void enter(std::uint32_t m, std::int64_t slot) {
    Leaving one{m, slot - t_.gap(plan_.moves[m].gap).begin, Time{}, false, false};
    one.done = done(one);
    const std::size_t index = leaving_.size();
    leaving_.push_back(one);
    by_done_.insert({one.done, ~index});
    of_version_[t_.gap(plan_.moves[m].gap).version].push_back(index);
    look_at(index, std::max(slot, std::min(plan_.moves[m].drop + one.shift, last_slot(one))));
  }

  void look_at(std::size_t index, std::int64_t slot) { due_[static_cast<std::size_t>(slot - first_)].push_back(index); }

  // It is away from then on, or touched, or this pass ends.
  std::int64_t last_slot(const Leaving& one) const {
    return std::min(first_ + t_.turn, back_already(end(one.move), one.move) + one.shift) - 1;
  }

  // Memory is given up as soon as the copy is done, and no earlier than the memory is needed: until then nothing waits.
  // What is planned to be away and is not yet stays late, as long as there is room.
  void leave(std::int64_t slot) {
    std::set<std::size_t> last;
    for (const std::size_t index : due_[static_cast<std::size_t>(slot - first_)]) {
      Leaving& one = leaving_[index];
      if (one.has_left || one.done <= now_) continue;
      if (slot >= last_slot(one)) {
        last.insert(index);
      } else {
        one.is_late = true;
        late_ += t_.storage(plan_.moves[one.move].gap).held;
        by_late_.insert({one.done, ~index});
        look_at(index, last_slot(one));
      }
    }
    give_up_done(slot);
    while (const auto index = first_to_wait_for(slot, last)) {
      now_ = std::max(now_, done_at_once(leaving_[*index], slot));
      give_up(*index, slot);
      last.erase(*index);
      give_up_done(slot);
    }
  }

  // Of what cannot stay beside all whose copy is done later, the one whose copy is done last.
  std::optional<std::size_t> first_to_wait_for(std::int64_t slot, const std::set<std::size_t>& last) const {
    std::pair<Time, std::size_t> first{};
    std::optional<std::size_t> found;
    for (const std::size_t index : last)
      if (const std::pair key{leaving_[index].done, ~index}; !leaving_[index].has_left && (!found || key > first))
        first = key, found = index;
    Bytes room = t_.budget - tree_.at(slot);
    if (late_ <= room) return found;
    for (auto one = by_late_.rbegin(); one != by_late_.rend() && (!found || *one > first); ++one) {
      const Bytes held = t_.storage(plan_.moves[leaving_[~one->second].move].gap).held;
      if (held > room) return ~one->second;
      room -= held;
    }
    return found;
  }

  void give_up_done(std::int64_t slot) {
    std::vector<std::size_t> ready;
    for (auto next = by_done_.begin(); next != by_done_.end() && next->first <= now_; ++next)
      ready.push_back(~next->second);
    for (auto index = ready.rbegin(); index != ready.rend(); ++index) give_up(*index, slot);
  }

  void give_up(std::size_t index, std::int64_t slot) {
    Leaving& one = leaving_[index];
    PlannedMove& move = plan_.moves[one.move];
    const Bytes held = t_.storage(move.gap).held;
    one.has_left = true;
    by_done_.erase({one.done, ~index});
    if (one.is_late)
      late_ -= held, by_late_.erase({one.done, ~index});
    else
      tree_.add(slot, move.drop + one.shift, -held);
    move.drop = static_cast<std::int32_t>(slot - one.shift);
    if (!comes_back(one.move))
      plan_.fetch_order.push_back(one.move);  // without a copy
    else if (rehearses_ || !decided_[one.move])
      absent_[move.path].insert({end(one.move) + one.shift, one.move});
  }

  // A copy of the version has been issued: when is it done?
  void renew(std::uint32_t version) {
    for (const std::size_t index : of_version_[version]) {
      Leaving& one = leaving_[index];
      if (one.has_left) continue;
      const Time before = one.done;
      one.done = done(one);
      if (by_done_.erase({before, ~index}) > 0) by_done_.insert({one.done, ~index});
      if (by_late_.erase({before, ~index}) > 0) by_late_.insert({one.done, ~index});
    }
  }

  // The copy out of the move's content begins when the link is free.
  void issue(std::uint32_t m, std::int64_t slot) {
    const CycleGap& gap = t_.gap(plan_.moves[m].gap);
    const std::uint8_t path = plan_.moves[m].path;
    out_free_[path] = std::max(out_free_[path], now_) + t_.out(plan_.moves[m].gap, path);
    copies_[gap.version].done = out_free_[path];
    copies_[gap.version].slot = slot;
    renew(gap.version);
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
    if (absent.empty()) return false;
    const Bytes here = tree_.at(slot) + late_;
    for (auto it = absent.begin(); it != absent.end() && asked < t_.settings.look_ahead; ++it) {
      ++asked;
      const std::uint32_t g = plan_.moves[it->second].gap;
      const Bytes held = t_.storage(g).held;
      // What could come later leaves memory to what a slower path brings next.
      const bool early = path == 0 && slot < latest_[g] + it->first - t_.gap(g).end;
      const Bytes reserved = early ? next_of_slower() : 0;
      // Once it is back, it stays until its touch.
      if (here + held + reserved > t_.budget) continue;
      if (tree_.highest(slot, back_already(it->first, it->second)) + held + reserved > t_.budget) continue;
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

  void fetch(Absent::iterator it, std::int64_t slot) {
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
    if (move.fetch + shift < back) tree_.add(move.fetch + shift, back, t_.storage(move.gap).held);
    if (decided_[m]) fetched_again_.emplace_back(m, move.fetch);
    decided_[m] = true;
    plan_.fetch_order.push_back(m);
  }

  const ScheduleTable& t_;
  const std::vector<std::int64_t>& latest_;
  MovePlan& plan_;
  PlainBytes tree_;
  const bool rehearses_;
  std::int64_t first_ = 0;                                         // the slot behind the highest, where most is away
  std::vector<std::vector<std::uint32_t>> begins_in_, copies_in_;  // by slot
  std::vector<Leaving> leaving_;                                   // what is or was in its gap
  std::set<std::pair<Time, std::size_t>> by_done_, by_late_;       // not away yet: done, ~index
  Bytes late_ = 0;                                                 // of by_late_; the tree counts it as away
  std::vector<std::vector<std::size_t>> of_version_, due_;  // indices of leaving_: by version; by slot of this pass
  std::vector<Copy> copies_;                                // by version
  // By path: the slot that touches it next, and the move.
  std::vector<Absent> absent_;
  std::vector<bool> decided_;                                          // by move
  std::vector<std::pair<std::uint32_t, std::int32_t>> fetched_again_;  // in a rehearsal: for the turn behind it
  std::map<std::int64_t, Time> arrivals_;                              // by slot: when all is back that it touches
  std::vector<Time> out_free_, in_free_;                               // by path
  Time now_{}, needed_{};
};

}  // namespace

void plain_place_returns(const ScheduleTable& table, const std::vector<std::int64_t>& latest, MovePlan& plan) {
  MovePlan first_plan = plan;
  PlainReturn rehearsal(table, latest, first_plan, nullptr);
  rehearsal.run();
  const PlainTurnCarry carry = rehearsal.carry();
  PlainReturn(table, latest, plan, &carry).run();
}

}  // namespace memwall
