#include "policies/cycle/move_passes.h"

#include <algorithm>
#include <compare>
#include <functional>
#include <limits>
#include <optional>

#include "policies/cycle/slot_bytes.h"
#include "policies/cycle/slot_lists.h"

namespace memwall {
namespace {

// What both passes see alike: moves by the slots in which their gaps begin, and their copies are issued.
struct SlotsOfMoves {
  SlotsOfMoves(const ScheduleTable& t, const MovePlan& plan)
      : begins(static_cast<std::size_t>(t.turn), plan.moves.size(),
               [&](std::uint32_t m) { return t.place(t.gap(plan.moves[m].gap).begin); }),
        copies(static_cast<std::size_t>(t.turn), plan.moves.size(), [&](std::uint32_t m) {
          const std::int32_t copy = plan.moves[m].copy;
          return copy == PlannedMove::kNoCopy ? BySlot::kNowhere : t.place(copy);
        }) {}
  BySlot begins, copies;
};

// What one turn leaves to the next. Times are of the next one's.
struct TurnCarry {
  std::vector<Time> out_free, in_free;  // by path
  std::vector<Time> copied;             // by version: when its copy out is done
  std::vector<Time> arrivals;           // Return::arrivals_, of what is on its way
  std::vector<std::pair<std::uint32_t, std::int32_t>>
      fetched;  // moves, and their slots: back earlier than the turn begins
};

// The second pass: when what is away comes back, through one turn.
class Return {
 public:
  // `carry`: of a turn that was run before; none: this one is run for what it leaves.
  Return(const ScheduleTable& table, const SlotsOfMoves& slots, const std::vector<std::int64_t>& latest, MovePlan& plan,
         const TurnCarry* carry)
      : t_(table),
        slots_(slots),
        latest_(latest),
        plan_(plan),
        tree_(live_under(table.cycle, plan)),
        rehearses_(carry == nullptr),
        of_version_(t_.cycle.versions()),
        due_(static_cast<std::size_t>(t_.turn) + 1),
        copies_(t_.cycle.versions()),
        absent_(table.links.paths.size()),
        decided_(plan.moves.size(), 0),
        arrivals_(2 * static_cast<std::size_t>(t_.turn) + 2),
        out_free_(table.links.paths.size()),
        in_free_(out_free_) {
    leaving_.reserve(plan.moves.size());
    due_.reserve(plan.moves.size());
    of_version_.reserve(plan.moves.size());
    const auto& live = t_.cycle.live();
    first_ = (std::max_element(live.begin(), live.end()) - live.begin() + 1) % t_.turn;
    for (std::uint32_t m = 0; m < plan.moves.size(); ++m) {
      const PlannedMove& move = plan.moves[m];
      if (move.copy == PlannedMove::kNoCopy) continue;
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
        if (decided_[m] == 0 && move.drop - shift < first_ && first_ <= end(m) - shift)
          absent_[plan_.moves[m].path].push_back({end(m) - shift, m});
    }
    for (std::vector<Absent>& absent : absent_) std::sort(absent.begin(), absent.end(), std::greater{});
    for (std::int64_t slot = first_; slot < first_ + t_.turn; ++slot) run_slot(slot);
    // Back right where it is touched: in a turn whose drop comes after the last slot of this pass.
    for (const std::vector<Absent>& absent : absent_)
      for (auto one = absent.rbegin(); one != absent.rend(); ++one) plan_.fetch_order.push_back(one->move);
  }

  TurnCarry carry() const {
    TurnCarry carry;
    const auto later = [&](Time time) { return time == kNever ? kNever : std::max(Time{}, time - now_); };
    for (const Time free : out_free_) carry.out_free.push_back(later(free));
    for (const Time free : in_free_) carry.in_free.push_back(later(free));
    for (const Copy& copy : copies_) carry.copied.push_back(later(copy.done));
    carry.arrivals.resize(arrivals_.size());
    for (std::size_t at = static_cast<std::size_t>(t_.turn); at < arrivals_.size(); ++at)
      carry.arrivals[at - static_cast<std::size_t>(t_.turn)] = later(arrivals_[at]);
    carry.fetched = fetched_again_;
    return carry;
  }

 private:
  // Away, and the slot that touches it next.
  struct Absent {
    std::int64_t at = 0;
    std::uint32_t move = 0;
    auto operator<=>(const Absent&) const = default;
  };
  // Of what is in its gap and has not left yet; of equal ones what entered first comes last.
  struct Done {
    Time at{};
    std::uint32_t index = 0;  // of leaving_
    friend bool operator<(const Done& a, const Done& b) { return a.at != b.at ? a.at < b.at : a.index > b.index; }
    friend bool operator>(const Done& a, const Done& b) { return b < a; }
    bool operator==(const Done&) const = default;
  };
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
  void take(const TurnCarry& carry) {
    out_free_ = carry.out_free, in_free_ = carry.in_free;
    arrivals_ = carry.arrivals;
    for (const auto& [m, slot] : carry.fetched) {
      decided_[m] = 1;
      plan_.moves[m].fetch = slot;
      tree_.add(slot, end(m), t_.storage(plan_.moves[m].gap).held);
      plan_.fetch_order.push_back(m);
    }
  }
  std::size_t place(std::int64_t slot) const { return t_.place(slot); }
  std::int64_t end(std::uint32_t m) const { return t_.gap(plan_.moves[m].gap).end; }
  Time& arrival(std::int64_t slot) { return arrivals_[static_cast<std::size_t>(slot - first_)]; }
  bool comes_back(std::uint32_t m) const {
    const CycleGap& gap = t_.gap(plan_.moves[m].gap);
    return gap.needs_content && gap.returns;
  }

  void run_slot(std::int64_t slot) {
    const std::size_t here = place(slot);
    for (const std::uint32_t m : slots_.copies[here])
      if (place(plan_.moves[m].copy) == here) issue(m, slot);
    for (const std::uint32_t m : slots_.begins[here]) enter(m, slot);
    leave(slot);
    // What this slot touches; its memory is counted from here on.
    for (std::vector<Absent>& absent : absent_)
      while (!absent.empty() && absent.back().at == slot) fetch(absent, absent.size() - 1, slot);
    now_ = std::max(now_, needed_);
    const Time end = now_ + t_.times[here];
    // Slower paths first: they have less time to lose.
    for (std::size_t path = in_free_.size(); path-- > 0;)
      while (in_free_[path] < end && fetch_next(slot, static_cast<std::uint8_t>(path))) {
      }
    now_ = end;
    needed_ = arrival(slot + 1);
  }

  // In its gap from the slot on. REQUIRES: the tree holds the move as it is planned.
  void enter(std::uint32_t m, std::int64_t slot) {
    Leaving one{m, slot - t_.gap(plan_.moves[m].gap).begin, Time{}, false, false};
    one.done = done(one);
    const auto index = static_cast<std::uint32_t>(leaving_.size());
    leaving_.push_back(one);
    push_done({one.done, index});
    of_version_.add(t_.gap(plan_.moves[m].gap).version, index);
    look_at(index, std::max(slot, std::min(plan_.moves[m].drop + one.shift, last_slot(one))));
  }

  void look_at(std::uint32_t index, std::int64_t slot) { due_.add(static_cast<std::size_t>(slot - first_), index); }

  // It is away from then on, or touched, or this pass ends.
  std::int64_t last_slot(const Leaving& one) const {
    return std::min(first_ + t_.turn, back_already(end(one.move), one.move) + one.shift) - 1;
  }

  // Memory is given up as soon as the copy is done, and no earlier than the memory is needed: until then nothing waits.
  // What is planned to be away and is not yet stays late, as long as there is room.
  void leave(std::int64_t slot) {
    last_.clear();
    std::uint32_t next = Chains::kNone;
    for (std::uint32_t index = due_.first(static_cast<std::size_t>(slot - first_)); index != Chains::kNone;
         index = next) {
      next = due_.behind(index);
      Leaving& one = leaving_[index];
      if (one.has_left || one.done <= now_) continue;
      if (slot >= last_slot(one)) {
        last_.push_back(index);
      } else {
        one.is_late = true;
        late_ += t_.storage(plan_.moves[one.move].gap).held;
        insert_late({one.done, index});
        look_at(index, last_slot(one));
      }
    }
    give_up_done(slot);
    while (const auto index = first_to_wait_for(slot)) {
      now_ = std::max(now_, done_at_once(leaving_[*index], slot));
      give_up(*index, slot);
      give_up_done(slot);
    }
  }

  // Of what cannot stay beside all whose copy is done later, the one whose copy is done last.
  std::optional<std::uint32_t> first_to_wait_for(std::int64_t slot) const {
    std::optional<Done> first;
    for (const std::uint32_t index : last_)
      if (const Done key{leaving_[index].done, index}; !leaving_[index].has_left && (!first || key > *first))
        first = key;
    Bytes room = t_.budget - tree_.at(slot);
    if (late_ > room)
      for (auto one = by_late_.rbegin(); one != by_late_.rend() && (!first || *one > *first); ++one) {
        const Bytes held = t_.storage(plan_.moves[leaving_[one->index].move].gap).held;
        if (held > room) return one->index;
        room -= held;
      }
    return first ? std::optional(first->index) : std::nullopt;
  }

  void give_up_done(std::int64_t slot) {
    ready_.clear();
    while (!by_done_.empty() && by_done_.front().at <= now_) {
      const Done next = by_done_.front();
      std::pop_heap(by_done_.begin(), by_done_.end(), std::greater{});
      by_done_.pop_back();
      const Leaving& one = leaving_[next.index];
      if (!one.has_left && one.done == next.at && (ready_.empty() || ready_.back() != next)) ready_.push_back(next);
    }
    for (auto one = ready_.rbegin(); one != ready_.rend(); ++one) give_up(one->index, slot);
  }

  // by_done_ keeps what is no longer so: it is passed over when its time comes.
  void push_done(Done done) {
    if (done.at == kNever) return;
    by_done_.push_back(done);
    std::push_heap(by_done_.begin(), by_done_.end(), std::greater{});
  }
  void insert_late(Done done) { by_late_.insert(std::lower_bound(by_late_.begin(), by_late_.end(), done), done); }
  // REQUIRES: it is in by_late_.
  void erase_late(Done done) { by_late_.erase(std::lower_bound(by_late_.begin(), by_late_.end(), done)); }

  void give_up(std::uint32_t index, std::int64_t slot) {
    Leaving& one = leaving_[index];
    PlannedMove& move = plan_.moves[one.move];
    const Bytes held = t_.storage(move.gap).held;
    one.has_left = true;
    if (one.is_late)
      late_ -= held, erase_late({one.done, index});
    else
      tree_.add(slot, move.drop + one.shift, -held);
    move.drop = static_cast<std::int32_t>(slot - one.shift);
    if (!comes_back(one.move)) {
      plan_.fetch_order.push_back(one.move);  // without a copy
    } else if (rehearses_ || decided_[one.move] == 0) {
      std::vector<Absent>& absent = absent_[move.path];
      const Absent away{end(one.move) + one.shift, one.move};
      absent.insert(std::lower_bound(absent.begin(), absent.end(), away, std::greater{}), away);
    }
  }

  // A copy of the version has been issued: when is it done?
  void renew(std::uint32_t version) {
    for (std::uint32_t index = of_version_.first(version); index != Chains::kNone; index = of_version_.behind(index)) {
      Leaving& one = leaving_[index];
      if (one.has_left) continue;
      const Time before = one.done;
      one.done = done(one);
      if (one.done == before) continue;
      push_done({one.done, index});
      if (one.is_late) erase_late({before, index}), insert_late({one.done, index});
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
    std::vector<Absent>& absent = absent_[path];
    if (absent.empty()) return false;
    const Bytes here = tree_.at(slot) + late_;
    const std::size_t last = absent.size() - std::min<std::size_t>(absent.size(), t_.settings.look_ahead);
    for (std::size_t i = absent.size(); i-- > last;) {
      const Absent& one = absent[i];
      const std::uint32_t g = plan_.moves[one.move].gap;
      const Bytes held = t_.storage(g).held;
      // What could come later leaves memory to what a slower path brings next.
      const bool early = path == 0 && slot < latest_[g] + one.at - t_.gap(g).end;
      const Bytes reserved = early ? next_of_slower() : 0;
      // Once it is back, it stays until its touch.
      if (here + held + reserved > t_.budget) continue;
      if (tree_.highest(slot, back_already(one.at, one.move)) + held + reserved > t_.budget) continue;
      fetch(absent, i, slot);
      return true;
    }
    return false;
  }

  // From which slot on its memory is counted for its touch in slot `at`.
  std::int64_t back_already(std::int64_t at, std::uint32_t m) const {
    return decided_[m] != 0 ? plan_.moves[m].fetch + at - end(m) : at;
  }

  // The one that is used first of what another path than the first brings back.
  Bytes next_of_slower() const {
    Absent next{std::numeric_limits<std::int64_t>::max(), 0};
    for (std::size_t path = 1; path < absent_.size(); ++path)
      if (!absent_[path].empty()) next = std::min(next, absent_[path].back());
    return next.at == std::numeric_limits<std::int64_t>::max() ? 0 : t_.storage(plan_.moves[next.move].gap).held;
  }

  // The absent one with this index.
  void fetch(std::vector<Absent>& absent, std::size_t index, std::int64_t slot) {
    const auto [at, m] = absent[index];
    absent.erase(absent.begin() + static_cast<std::ptrdiff_t>(index));
    const std::int64_t back = back_already(at, m);
    PlannedMove& move = plan_.moves[m];
    const std::int64_t shift = at - end(m);
    Time& free = in_free_[move.path];
    free = std::max(free, now_) + t_.in(move.gap, move.path);
    Time& needed = at == slot ? needed_ : arrival(at);
    needed = std::max(needed, free);
    move.fetch = static_cast<std::int32_t>(std::max<std::int64_t>(slot - shift, move.drop + 1));
    if (move.fetch + shift < back) tree_.add(move.fetch + shift, back, t_.storage(move.gap).held);
    if (decided_[m] != 0) fetched_again_.emplace_back(m, move.fetch);
    decided_[m] = 1;
    plan_.fetch_order.push_back(m);
  }

  const ScheduleTable& t_;
  const SlotsOfMoves& slots_;
  const std::vector<std::int64_t>& latest_;
  MovePlan& plan_;
  SlotBytes tree_;  // what lives, with the moves as they are planned
  const bool rehearses_;
  std::int64_t first_ = 0;           // the slot behind the highest, where most is away
  std::vector<Leaving> leaving_;     // what is or was in its gap
  std::vector<Done> by_done_;        // a heap of what has not left yet, the first on top
  std::vector<Done> by_late_;        // what is late, ascending
  Bytes late_ = 0;                   // of by_late_; the tree counts it as away
  Chains of_version_, due_;          // of leaving_: by version; by slot of this pass, in which it is looked at
  std::vector<std::uint32_t> last_;  // of leaving_: what has to leave in the slot
  std::vector<Done> ready_;
  std::vector<Copy> copies_;                                           // by version
  std::vector<std::vector<Absent>> absent_;                            // by path, what is touched next last
  std::vector<std::uint8_t> decided_;                                  // by move: is it?
  std::vector<std::pair<std::uint32_t, std::int32_t>> fetched_again_;  // in a rehearsal: for the turn behind it
  std::vector<Time> arrivals_;            // by slot from first_ on: when all is back that it touches
  std::vector<Time> out_free_, in_free_;  // by path
  Time now_{}, needed_{};
};

}  // namespace

void place_returns(const ScheduleTable& table, const std::vector<std::int64_t>& latest, MovePlan& plan) {
  const SlotsOfMoves slots(table, plan);
  MovePlan first_plan = plan;
  Return rehearsal(table, slots, latest, first_plan, nullptr);
  rehearsal.run();
  const TurnCarry carry = rehearsal.carry();
  Return(table, slots, latest, plan, &carry).run();
}

}  // namespace memwall
