#include "policies/cycle/move_schedule.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

#include "policies/cycle/move_choice.h"
#include "policies/cycle/move_passes.h"

namespace memwall {

struct MoveScheduler::Known {
  const StepCycle& cycle;
  const CycleLinks& links;
  const Bytes budget;
  const std::vector<Duration> times;  // of slots
  const CopyTimes copies;
  const ExcessTree all;  // what lives where nothing is away
};

namespace {

constexpr Duration kLeastWait = microseconds(1);
// From this growth of waits on, they are those of a flow; where so many times its bytes do not help, they are put where
// most is over the budget, and nowhere else.
constexpr double kStuck = 4, kSoonStuck = 2, kMostFlowing = 6;
constexpr Bytes kFarTooMuch = 4;  // more than this part of the excess is left without waits

std::vector<Duration> times_of(const StepCycle& cycle) {
  std::vector<Duration> times;
  for (const CycleSlot& slot : cycle.slots()) times.push_back(slot.time);
  return times;
}

// Bytes over the budget, and the slot where they are most.
std::pair<Bytes, std::int64_t> worst_excess(const ExcessTree& tree, std::int64_t turn, Bytes budget) {
  std::pair<Bytes, std::int64_t> worst{0, -1};
  for (std::int64_t slot = tree.next_over(0); slot < turn; slot = tree.next_over(slot + 1)) {
    worst = std::max(worst, {tree.at(slot) - budget, slot});
    if (slot + 1 >= turn) break;
  }
  return worst;
}

// The device has to wait where more is left than the budget: before `worst`, as much as copies out need longer by each
// slot up to there; or behind it, as copies back do.
void stretch(const ScheduleTable& table, std::int64_t worst, bool out, double rate, std::vector<Duration>& waits) {
  Duration waited{};
  for (std::int64_t i = table.turn - 1; i >= 0; --i) {
    const std::int64_t slot = out ? worst - i : worst + i;
    if (!table.tree.is_over(static_cast<std::int64_t>(table.place(slot)))) continue;
    const Bytes over = table.tree.at(static_cast<std::int64_t>(table.place(slot))) - table.budget;
    const Duration needed = from_seconds(static_cast<double>(over) / rate) + kLeastWait;
    if (needed <= waited) continue;
    waits[table.place(out ? slot : slot + 1)] += needed - waited;
    waited = needed;
  }
}

// Waits for which bytes over the budget, as they come and go around the highest of them, could flow out before it and
// back behind it, with `scale` times the bytes: where waits for the worst slot alone only make its neighbours worst.
std::vector<Duration> flowing_waits(const ScheduleTable& table, double scale) {
  const auto& live = table.cycle.live();
  const std::int64_t peak = std::max_element(live.begin(), live.end()) - live.begin();
  // Where all slots are over it, what is over in all of them leaves and comes back at other times.
  const Bytes level = std::max(table.budget, *std::min_element(live.begin(), live.end()));
  std::vector<Duration> waits(live.size());
  for (const bool out : {true, false}) {
    const double rate = out ? table.links.total_out : table.links.total_in;
    std::int64_t first = peak;  // of those over the budget up to the peak, or the last behind it
    const std::int64_t step = out ? 1 : -1;
    while (std::abs(first - peak) < table.turn - 1 && live[table.place(first - step)] > level) first -= step;
    Duration waited{}, worked{};
    for (std::int64_t slot = first; slot != peak + step; slot += step) {
      const auto over = static_cast<double>(live[table.place(slot)] - level);
      const Duration missing = from_seconds(scale * over / rate) - worked - waited;
      if (missing > Duration{}) waits[table.place(out ? slot : slot + 1)] += missing, waited += missing;
      worked += table.times[table.place(slot)];
    }
  }
  return waits;
}

// Storages that are worth their copies, where these are enough; else 0: all.
Bytes least_to_move(const StepCycle& cycle, Bytes excess, Bytes finest) {
  const auto& live = cycle.live();
  const std::int64_t peak = std::max_element(live.begin(), live.end()) - live.begin();
  const Bytes least = excess / finest;
  Bytes enough = excess;
  for (const CycleGap& gap : cycle.gaps()) {
    const std::int64_t here = peak < gap.begin ? peak + cycle.size() : peak;
    const Bytes held = cycle.storages()[gap.storage].held;
    if (here < gap.end && held >= least) enough -= held;
    if (enough <= 0) return least;
  }
  return 0;
}

// Later choices may have made earlier ones needless.
void prune(ScheduleTable& table, std::vector<PlannedMove>& moves) {
  std::vector<PlannedMove> needed;
  std::vector<std::uint32_t> relying(table.cycle.versions(), 0);
  for (const PlannedMove& move : moves) ++relying[table.gap(move.gap).version];
  for (auto move = moves.rbegin(); move != moves.rend(); ++move) {
    const Bytes held = table.storage(move->gap).held;
    const bool alone = move->copy == PlannedMove::kNoCopy || relying[table.gap(move->gap).version] == 1;
    if (alone && table.tree.highest(move->drop, move->fetch) + held <= table.budget) {
      table.tree.add(move->drop, move->fetch, held);
      --relying[table.gap(move->gap).version];
    } else {
      needed.push_back(*move);
    }
  }
  moves.assign(needed.rbegin(), needed.rend());
}

// By MoveSettings::farthest.
MoveSchedule farthest_moves(const MoveScheduler::Known& known, const MoveSettings& settings) {
  const StepCycle& cycle = known.cycle;
  const Bytes budget = known.budget;
  MoveSchedule result;
  const Bytes least = least_to_move(cycle, cycle.peak() - budget, settings.finest);
  const std::vector<Duration> waits(known.times.size());
  for (const Bytes smallest : {least, Bytes{0}}) {
    ScheduleTable table(cycle, known.links, known.copies, budget, settings, known.times, waits, known.all);
    result.plan = {};
    MoveChoice choice(table, result.plan.moves);
    choice.run_farthest(smallest);
    result.work += choice.looked_at() + known.times.size();
    const std::int64_t over = worst_excess(table.tree, table.turn, budget).second;
    result.fits = over < 0;
    if (result.fits) {
      prune(table, result.plan.moves);
      order_departures(table, result.plan);
      place_returns(table, choice.latest(), result.plan);
      return result;
    }
    result.over = static_cast<std::uint32_t>(over);
    if (least == 0) break;
  }
  return result;
}

// Chooses what moves in rounds: what is still over the budget behind one makes the device wait longer in the next.
class Rounds {
 public:
  Rounds(const MoveScheduler::Known& known, const MoveSettings& settings)
      : known_(known),
        settings_(settings),
        excess_(known.cycle.peak() - known.budget),
        least_(least_to_move(known.cycle, excess_, settings.finest)),
        waits_(settings.waits) {
    waits_.resize(known.times.size());
    result_.fits = false;
  }

  MoveSchedule run() {
    for (int round = 0; round < settings_.rounds && !result_.fits; ++round)
      if (!choose(round)) return std::move(result_);
    if (!result_.fits) return std::move(result_);
    place_returns(*table_, choice_->latest(), result_.plan);
    return std::move(result_);
  }

 private:
  // False: there is nothing to choose, or waits become too long.
  bool choose(int round) {
    if (round == 0 || !settings_.goes_on) begin_anew();
    if (!table_->tree.is_over()) {
      result_.fits = true;
      return false;
    }
    if (stuck_) table_->margin = 0;
    const std::uint64_t before = choice_->looked_at();
    choice_->run(round < settings_.rounds / 2 ? least_ : 0);
    result_.work += choice_->looked_at() - before + known_.times.size();
    const auto [over, slot] = worst_excess(table_->tree, table_->turn, known_.budget);
    result_.fits = slot < 0;
    if (result_.fits) {
      prune(*table_, result_.plan.moves);
      order_departures(*table_, result_.plan);
      return true;
    }
    result_.over = static_cast<std::uint32_t>(slot);
    const std::vector<Duration> given = waits_;
    wait_longer(over, slot, round);
    if (std::accumulate(waits_.begin(), waits_.end(), Duration{}) > settings_.longest_wait) return false;
    if (settings_.goes_on) give_more_than(given);
    return true;
  }

  void begin_anew() {
    result_.plan = {};
    choice_.reset();
    table_.emplace(known_.cycle, known_.links, known_.copies, known_.budget, settings_, known_.times, waits_,
                   known_.all);
    choice_.emplace(*table_, result_.plan.moves);
  }

  void wait_longer(Bytes over, std::int64_t slot, int round) {
    growth_ = over > last_ * 9 / 10 ? 2 * growth_ : 1;
    stuck_ = stuck_ || over > last_ * 9 / 10;
    last_ = over;
    const bool late = choice_->leaves_too_late(slot);
    // Far too little time: waits for single slots would take many rounds to become those of a flow.
    flows_ = flows_ || (round == 0 && settings_.waits.empty() && over > excess_ / kFarTooMuch);
    stuck_ = stuck_ || flows_;
    const bool starts = flows_ && flowing_ == 1;
    const double rate = choice_->rate(slot, late);
    if ((starts || growth_ > (flows_ ? kSoonStuck : kStuck)) && flowing_ <= kMostFlowing) {
      waits_ = flowing_waits(*table_, flowing_);
      flowing_ *= 1.5;
    } else if (growth_ > kStuck)
      waits_[table_->place(late ? slot : slot + 1)] +=
          from_seconds(growth_ * static_cast<double>(over) / rate) + kLeastWait;
    else
      stretch(*table_, slot, late, rate / growth_, waits_);
  }

  // What links had time for, they keep.
  void give_more_than(const std::vector<Duration>& given) {
    std::vector<Duration> more(waits_.size());
    for (std::size_t slot = 0; slot < waits_.size(); ++slot) {
      more[slot] = std::max(Duration{}, waits_[slot] - given[slot]);
      waits_[slot] = given[slot] + more[slot];
    }
    choice_->give(more);
  }

  const MoveScheduler::Known& known_;
  const MoveSettings& settings_;
  const Bytes excess_, least_;
  std::vector<Duration> waits_;
  MoveSchedule result_;
  std::optional<ScheduleTable> table_;
  std::optional<MoveChoice> choice_;
  // Longer waits have not helped: short gaps are needed, too.
  bool stuck_ = false;
  // Nor has as much as the bytes over the budget take: a whole storage is longer on its way, and it may not have been
  // the wait before the first slot that is over.
  double growth_ = 1, flowing_ = 1;
  bool flows_ = false;
  Bytes last_ = std::numeric_limits<Bytes>::max() / 16;
};

}  // namespace

MoveScheduler::MoveScheduler(const StepCycle& cycle, const CycleLinks& links, Bytes budget)
    : known_(std::make_shared<const Known>(Known{cycle, links, budget, times_of(cycle), CopyTimes(cycle, links),
                                                 ExcessTree(cycle.live(), times_of(cycle), budget)})) {}

MoveSchedule MoveScheduler::schedule(const MoveSettings& settings) const {
  return settings.farthest ? farthest_moves(*known_, settings) : Rounds(*known_, settings).run();
}

MoveSchedule schedule_moves(const StepCycle& cycle, const CycleLinks& links, Bytes budget,
                            const MoveSettings& settings) {
  return MoveScheduler(cycle, links, budget).schedule(settings);
}

}  // namespace memwall
