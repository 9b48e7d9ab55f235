#include "policies/cycle/whole_moves.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "policies/cycle/cycle_replay.h"
#include "policies/cycle/whole_gaps.h"

namespace memwall {
namespace {

constexpr double kNoTurn = std::numeric_limits<double>::infinity();
// Turns that differ by less are the same.
constexpr double kSameTurn = 1e-10;

struct MovesChoice {
  double seconds = 0;   // of a turn at least
  bool covers = false;  // keeps to the budget: copies are ordered next
  GapChoices gaps;
  std::vector<CopyPrecedence> decided;
};

class WholeSearch {
 public:
  struct Best {
    double seconds = kNoTurn;
    GapChoices gaps;
    std::array<std::vector<CopyPlace>, 2> order;
  };

  // The gaps have to outlive it. `ideal`: seconds of a turn without waits.
  WholeSearch(const WholeGaps& gaps, double ideal, std::uint64_t most_work) : gaps_(gaps), most_work_(most_work) {
    MovesChoice root;
    root.seconds = ideal;
    root.gaps.resize(gaps.open().size());
    push(std::move(root));
  }

  WholeMoves run() {
    while (!queue_.empty() && work_ < most_work_ && queue_.top().seconds < worse()) {
      const MovesChoice choice = std::move(choices_[queue_.top().number]);
      queue_.pop();
      choice.covers ? order_copies(choice) : cover(choice);
    }
    const double open = std::min(queue_.empty() ? kNoTurn : queue_.top().seconds, closed_);
    WholeMoves found;
    found.bound_seconds = std::min(open, worse());
    found.is_complete = best_.seconds < kNoTurn && open >= worse();
    found.work = work_;
    return found;
  }

  // Behind run(). Of infinite seconds where there is none.
  const Best& best() const { return best_; }

 private:
  // A choice in its place in choices_. The newest of equals comes first.
  struct Queued {
    double seconds = 0;
    std::size_t number = 0;
    bool operator<(const Queued& other) const {
      return seconds != other.seconds ? seconds > other.seconds : number < other.number;
    }
  };

  double worse() const { return best_.seconds * (1 - kSameTurn); }

  void push(MovesChoice choice) {
    if (!choice.covers) {
      const WholeGaps::Covers covers = gaps_.follow(choice.gaps, work_);
      if (covers == WholeGaps::Covers::cannot) return;
      choice.covers = covers == WholeGaps::Covers::all;
    }
    choice.seconds = gaps_.copies(choice.gaps, work_).turn.least(choice.decided, choice.seconds, work_);
    if (choice.seconds >= worse()) return;
    queue_.push({choice.seconds, choices_.size()});
    choices_.push_back(std::move(choice));
  }

  // One of the candidates is away; those before it in the order are not.
  void cover(const MovesChoice& choice) {
    GapChoices rest = choice.gaps;
    for (const auto& [gap, place] : gaps_.candidates(choice.gaps, work_)) {
      MovesChoice next{choice.seconds, false, rest, {}};
      next.gaps[gap].leave(place);
      push(std::move(next));
      rest[gap].kept |= std::uint64_t{1} << place;
    }
  }

  void order_copies(const MovesChoice& choice) {
    OrderedCopies ordered = gaps_.copies(choice.gaps, work_).turn.ordered(choice.decided, choice.seconds, work_);
    if (ordered.seconds < best_.seconds) best_ = {ordered.seconds, choice.gaps, std::move(ordered.order)};
    if (ordered.alternatives.empty()) closed_ = std::min(closed_, choice.seconds);
    for (const CopyPrecedence& one : ordered.alternatives) {
      MovesChoice next = choice;
      next.decided.push_back(one);
      push(std::move(next));
    }
  }

  const WholeGaps& gaps_;
  const std::uint64_t most_work_;
  std::vector<MovesChoice> choices_;
  std::priority_queue<Queued> queue_;
  Best best_;
  double closed_ = kNoTurn;  // seconds at least of choices whose copies have no better order
  std::uint64_t work_ = 0;
};

// Slots at which copies are issued, in their order: each when it is released, and behind the one before it.
std::vector<std::int32_t> issued(const std::vector<std::int32_t>& released, const std::vector<CopyPlace>& order,
                                 std::int32_t turn) {
  std::vector<std::int32_t> at = released;  // by place, in the count of the copy
  if (order.empty()) return at;
  for (bool changed = true; changed;) {
    changed = false;
    for (std::size_t i = 0; i < order.size(); ++i) {
      const std::size_t next = i + 1 < order.size() ? i + 1 : 0;
      const std::int32_t turns = order[next].turn - order[i].turn + (i + 1 < order.size() ? 0 : 1);
      if (at[i] - turns * turn <= at[next]) continue;
      at[next] = at[i] - turns * turn;
      changed = true;
    }
  }
  return at;
}

// Behind the place where the slots of two that follow each other differ: those of one slot stand in their order.
std::size_t first_in_turn(const std::vector<std::int32_t>& at, const std::vector<CopyPlace>& order, std::int32_t turn) {
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t before = i == 0 ? order.size() - 1 : i - 1;
    const std::int32_t turns = order[i].turn - order[before].turn + (i == 0 ? 1 : 0);
    if (at[i] + turns * turn > at[before]) return i;
  }
  return 0;
}

// Carries out what was found: visit(open gap, slot in its count) for each copy of a direction in the order of the
// links, from a slot on in which nothing of the turn before is issued.
template <typename ReleasedAt, typename Visit>
void each_copy(const WholeGaps& gaps, const std::vector<std::uint32_t>& gap_of, const std::vector<CopyPlace>& order,
               std::int32_t turn, ReleasedAt released_at, Visit visit) {
  std::vector<std::int32_t> released;
  for (const CopyPlace& place : order)
    released.push_back(static_cast<std::int32_t>(gaps.in_turn(released_at(gap_of[place.copy]))));
  const std::vector<std::int32_t> at = issued(released, order, turn);
  const std::size_t first = first_in_turn(at, order, turn);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t here = (first + i) % order.size();
    const std::uint32_t gap = gap_of[order[here].copy];
    visit(gap, released_at(gap) + at[here] - released[here]);
  }
}

MovePlan plan_of(const WholeGaps& gaps, const WholeSearch::Best& best, std::int32_t turn) {
  MovePlan plan;
  std::uint64_t work = 0;
  const CopiesOfChoice copies = gaps.copies(best.gaps, work);
  std::vector<std::uint32_t> move_of(gaps.open().size(), 0);
  const auto add = [&](std::uint32_t g, std::int32_t copied) {
    move_of[g] = static_cast<std::uint32_t>(plan.moves.size());
    plan.moves.push_back({gaps.open()[g].gap, 0, copied, gaps.dropped(best.gaps, g), 0});
  };
  each_copy(
      gaps, copies.gaps[0], best.order[0], turn, [&](std::uint32_t g) { return gaps.gap(g).written + 1; }, add);
  for (const std::uint32_t g : copies.gaps[1])
    if (std::ranges::find(copies.gaps[0], g) == copies.gaps[0].end()) add(g, PlannedMove::kNoCopy);
  each_copy(
      gaps, copies.gaps[1], best.order[1], turn, [&](std::uint32_t g) { return gaps.fetched(best.gaps, g); },
      [&](std::uint32_t g, std::int32_t fetched) {
        plan.moves[move_of[g]].fetch = fetched;
        plan.fetch_order.push_back(move_of[g]);
      });
  return plan;
}

// What costs nothing is away where that is needed.
void add_free_moves(const StepCycle& cycle, Bytes budget, MovePlan& plan) {
  std::vector<Bytes> live = live_under(cycle, plan);
  const std::size_t first = plan.moves.size();
  const auto is_over = [&] { return std::ranges::any_of(live, [&](Bytes bytes) { return bytes > budget; }); };
  for (std::uint32_t g = 0; g < cycle.gaps().size() && is_over(); ++g) {
    const CycleGap& gap = cycle.gaps()[g];
    if (!costs_nothing(gap)) continue;
    bool helps = false;
    for (std::int32_t k = gap.begin; k < gap.end; ++k)
      helps = helps || live[static_cast<std::size_t>(k) % cycle.size()] > budget;
    if (!helps) continue;
    plan.moves.push_back({g, 0, PlannedMove::kNoCopy, gap.begin, gap.end});
    live = live_under(cycle, plan);
  }
  for (std::size_t m = first; m < plan.moves.size(); ++m) plan.fetch_order.push_back(static_cast<std::uint32_t>(m));
}

// Of all that ever lies there.
bool has_room(const StepCycle& cycle, const CyclePath& path, const MovePlan& plan) {
  std::vector<bool> counted(cycle.versions(), false);
  Bytes taken = 0;
  for (const PlannedMove& move : plan.moves) {
    const CycleGap& gap = cycle.gaps()[move.gap];
    if (costs_nothing(gap) || counted[gap.version]) continue;
    counted[gap.version] = true;
    taken += path.held(cycle.storages()[gap.storage].moved);
  }
  return taken <= path.room;
}

}  // namespace

std::optional<WholeMoves> find_whole_moves(const StepCycle& cycle, const CycleLinks& links, Bytes budget,
                                           const WholeMovesLimits& limits) {
  if (links.paths.size() != 1) return std::nullopt;
  const MovingProblem problem = problem_of_plans(cycle, budget);
  const WholeGaps gaps(cycle, links, problem, limits.gaps, limits.slots);
  if (!gaps.applies()) return std::nullopt;
  WholeSearch search(gaps, to_seconds(cycle.turn()), limits.work);
  WholeMoves found = search.run();
  if (search.best().seconds == kNoTurn) return found;
  MovePlan plan = plan_of(gaps, search.best(), static_cast<std::int32_t>(cycle.size()));
  add_free_moves(cycle, budget, plan);
  if (!has_room(cycle, links.paths.front(), plan)) return found;
  const double seconds = to_seconds(replay_cycle(cycle, links, plan).turn);
  found.best = {std::move(plan), seconds};
  return found;
}

double whole_moves_bound_seconds(const StepCycle& cycle, const CycleLinks& links, Bytes budget,
                                 const WholeMovesLimits& limits) {
  if (links.paths.size() != 1 || links.paths.front().is_staged()) return 0;
  MovingProblem problem = problem_of_bound(cycle, budget);
  if (!relax(cycle, limits.gaps, std::min<std::size_t>(limits.slots, WholeGaps::kMostSlots), problem)) return 0;
  const WholeGaps gaps(cycle, links, problem, limits.gaps, limits.slots);
  if (!gaps.applies()) return 0;
  double work = 0;
  for (const double seconds : problem.seconds) work += seconds;
  const double bound = WholeSearch(gaps, work, limits.work).run().bound_seconds;
  return bound < kNoTurn ? bound : 0;
}

}  // namespace memwall
