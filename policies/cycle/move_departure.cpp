#include "policies/cycle/move_passes.h"

#include <algorithm>
#include <limits>
#include <queue>

#include "policies/cycle/slot_lists.h"

namespace memwall {
namespace {

// The order of copies out: whenever the link is idle, of those whose content is there the one whose memory is needed
// first.
class Departure {
 public:
  Departure(const ScheduleTable& table, MovePlan& plan) : t_(table), plan_(plan), lanes_(table.links.paths.size()) {}

  void run() {
    const BySlot ready(t_.cycle.size(), plan_.moves.size(), [&](std::uint32_t m) {
      return plan_.moves[m].copy == PlannedMove::kNoCopy ? BySlot::kNowhere : t_.place(plan_.moves[m].copy);
    });
    due_.assign(t_.cycle.versions(), std::numeric_limits<std::int64_t>::max());
    for (const PlannedMove& move : plan_.moves) {
      const CycleGap& gap = t_.gap(move.gap);
      due_[gap.version] = std::min<std::int64_t>(due_[gap.version], move.drop - gap.written);
    }
    issued_.resize(plan_.moves.size());
    // The second turn begins with what the first has left.
    for (std::int64_t slot = 0; slot < 2 * t_.turn; ++slot) {
      const std::size_t here = t_.place(slot);
      for (const std::uint32_t m : ready[here])
        lanes_[plan_.moves[m].path].waiting.push({slot + due(m) - ready_at(m), m, slot - ready_at(m)});
      const Time end = now_ + t_.waits[here] + t_.times[here];
      for (std::uint8_t path = 0; path < lanes_.size(); ++path) issue(slot, end, path);
      now_ = end;
    }
    settle();
  }

 private:
  struct Waiting {
    std::int64_t due = 0;
    std::uint32_t move = 0;
    std::int64_t shift = 0;
    friend bool operator<(const Waiting& a, const Waiting& b) {
      return a.due != b.due ? a.due > b.due : a.move > b.move;
    }
  };
  std::int64_t ready_at(std::uint32_t m) const { return plan_.moves[m].copy; }
  // In the gap's count: the first drop of any move of its content.
  std::int64_t due(std::uint32_t m) const {
    const CycleGap& gap = t_.gap(plan_.moves[m].gap);
    return gap.written + due_[gap.version];
  }

  void issue(std::int64_t slot, Time end, std::uint8_t path) {
    Lane& lane = lanes_[path];
    while (lane.free < end && !lane.waiting.empty()) {
      const Waiting next = lane.waiting.top();
      lane.waiting.pop();
      lane.free = std::max(lane.free, now_) + t_.out(plan_.moves[next.move].gap, path);
      issued_[next.move] = {slot - next.shift, sequence_++};
    }
  }

  // What the second turn issued replaces what the first did. Moves are put into the order of their copies.
  void settle() {
    std::vector<std::pair<std::int64_t, std::uint32_t>> order;  // of equal ones as they stand
    for (std::uint32_t m = 0; m < plan_.moves.size(); ++m) {
      const Issue& issue = issued_[m];
      order.emplace_back(issue.sequence, m);
      if (issue.sequence < 0) continue;
      PlannedMove& move = plan_.moves[m];
      move.copy = static_cast<std::int32_t>(std::clamp<std::int64_t>(issue.slot, move.copy, due(m)));
    }
    std::sort(order.begin(), order.end());
    std::vector<PlannedMove> ordered;
    ordered.reserve(order.size());
    for (const auto& [sequence, m] : order) ordered.push_back(plan_.moves[m]);
    plan_.moves = std::move(ordered);
  }

  struct Issue {
    std::int64_t slot = 0, sequence = -1;  // in the gap's count; among all, -1: never
  };
  const ScheduleTable& t_;
  MovePlan& plan_;
  struct Lane {
    std::priority_queue<Waiting> waiting;
    Time free{};
  };
  std::vector<Lane> lanes_;  // by path
  std::vector<std::int64_t> due_;  // by version: slots behind its write
  std::vector<Issue> issued_;      // by move
  std::int64_t sequence_ = 0;
  Time now_{};
};

}  // namespace

void order_departures(const ScheduleTable& table, MovePlan& plan) { Departure(table, plan).run(); }

}  // namespace memwall
