#include "policies/cycle/move_search.h"

#include <algorithm>
#include <random>

#include "policies/cycle/cycle_replay.h"

namespace memwall {
namespace {

// A plan so near to the bound is not searched on.
constexpr double kNear = 1.0005;
// What covers a peak at which the device waits has to be away anyway; what passes the link while that is the bottleneck,
// and does not, is in the way. Chosen on the workloads of data/g10.
constexpr double kCovers = 10, kIsInTheWay = 0.1;
// Waits are planned for copies that may be cut: in the end they may be shorter.
constexpr double kWaitSlack = 8, kLeastSlack = 1e-3;
// Of repairs there are as many as take about a second: each takes the longer the more slots there are. The search ends
// where most of them in a row did not make the turn shorter by this.
constexpr std::size_t kSlotsInAll = 120000, kFewestRepairs = 24;
constexpr double kBetter = 0.9995;
// MoveSchedule::work, of which a second does about this much. More is done only where nothing fits yet.
constexpr std::uint64_t kMostWork = 1'200'000, kMostToFit = 5'000'000;
// How far back in a queue the cause of a wait is sought.
constexpr std::size_t kReach = 256, kNearest = 32;

std::int64_t modulo(std::int64_t a, std::int64_t turn) { return ((a % turn) + turn) % turn; }

// By gap, from the windows that bind.
std::vector<double> weights_of(const StepCycle& cycle, const MovesBound& bound) {
  const std::int64_t turn = cycle.size();
  std::vector<double> weights(cycle.gaps().size(), 1);
  for (std::size_t g = 0; g < weights.size(); ++g) {
    const CycleGap& gap = cycle.gaps()[g];
    for (const BindingWindow& window : bound.windows) {
      const std::int64_t highest = window.peak, peak = highest < gap.begin ? highest + turn : highest;
      const std::int64_t at = modulo((window.out ? gap.written : gap.end) - window.from, turn);
      if (peak >= gap.begin && peak < gap.end)
        weights[g] *= kCovers;
      else if (at <= window.to - window.from)
        weights[g] *= kIsInTheWay;
    }
  }
  return weights;
}

class Search {
 public:
  Search(const StepCycle& cycle, const CycleLinks& links, Bytes budget, const MovesBound& bound)
      : cycle_(cycle), links_(links), budget_(budget), bound_(bound) {}

  FoundMoves run(const SearchEffort& effort) {
    worth_ = effort.worth_seconds;
    MoveSettings settings;
    settings.finest = effort.finest;
    base_weights_ = weights_of(cycle_, bound_);
    std::uint32_t asked = 0;
    for (const bool by_area : {false, true})
      for (const double margin : {4.0, 1.0, 8.0, 2.0})
        for (const std::uint32_t look_ahead : {1u, 8u}) {
          if (asked++ >= effort.settings || is_done() || is_long()) break;
          if (best_.fits) settings.waits = shortened(replayed_.waits, 0.95);
          settings.margin = margin, settings.look_ahead = look_ahead, settings.by_area = by_area;
          settings.nearness = asked % 2 == 0 ? 0.9 : 0.98;
          settings.weights = asked % 2 == 0 ? base_weights_ : std::vector<double>(base_weights_.size(), 1);
          attempt(settings);
        }
    double last = best_.seconds;
    std::uint32_t in_vain = 0;
    // In a cycle of few slots a repair takes little time.
    const auto most = static_cast<std::uint32_t>(
        std::min<std::size_t>(effort.repairs, std::max(kSlotsInAll / cycle_.size(), kFewestRepairs)));
    for (std::uint32_t i = 0; i < most && best_.fits && !is_done() && !is_long() && in_vain < most * 3 / 4; ++i) {
      attempt(repaired(i));
      in_vain = best_.seconds < last * kBetter ? 0 : in_vain + 1;
      if (in_vain == 0) last = best_.seconds;
    }
    return std::move(best_);
  }

 private:
  bool is_done() const { return best_.fits && best_.seconds <= bound_.seconds * kNear; }

  bool is_long() const { return best_.work > (best_.fits ? kMostWork : kMostToFit); }

  void attempt(MoveSettings settings) {
    const double wait = std::min(worth_, best_.fits ? best_.seconds : worth_) - to_seconds(cycle_.turn());
    settings.longest_wait = from_seconds(std::min(1e6, kWaitSlack * std::max(0.0, wait) + kLeastSlack));
    MoveSchedule schedule = schedule_moves(cycle_, links_, budget_, settings);
    ++best_.tried;
    best_.work += schedule.work;
    if (!schedule.fits) {
      if (!best_.fits) best_.over = schedule.over;
      return;
    }
    const std::vector<Bytes> live = live_under(cycle_, schedule.plan);
    if (*std::max_element(live.begin(), live.end()) > budget_ || !is_sound(cycle_, schedule.plan)) return;
    ReplayedCycle replayed = replay_cycle(cycle_, links_, schedule.plan);
    const double seconds = to_seconds(replayed.turn);
    last_waits_ = replayed.waits;
    if (best_.fits && seconds > best_.seconds) return;
    best_.fits = true;
    best_.seconds = seconds;
    best_.plan = std::move(schedule.plan);
    replayed_ = std::move(replayed);
    settings_ = std::move(settings);
  }

  // Settings drawn anew, or the best so far but for weights; with some of the waits of the best plan or of the last
  // one: less time for the links makes the next plan choose differently.
  MoveSettings repaired(std::uint32_t round) {
    MoveSettings next = settings_;
    constexpr double kShares[] = {0.95, 0.9, 0.85, 0.97, 0.7};
    next.waits = shortened(random_() % 2 == 0 ? last_waits_ : replayed_.waits, kShares[random_() % std::size(kShares)]);
    constexpr double kNearness[] = {0.98, 0.95, 0.9, 0.8};
    next.nearness = kNearness[round % std::size(kNearness)];
    if (next.weights.empty()) next.weights.assign(cycle_.gaps().size(), 1);
    switch (random_() % 4) {
      case 0:
      case 1: {
        constexpr double kMargins[] = {1, 4, 2, 8};
        next.margin = kMargins[random_() % std::size(kMargins)];
        next.by_area = random_() % 2 == 0;
        next.look_ahead = random_() % 2 == 0 ? 1 : 8;
        if (random_() % 2 == 0) next.weights = base_weights_;
        if (random_() % 2 == 0) next.weights.assign(cycle_.gaps().size(), 1);
        break;
      }
      case 2: {
        const double strength = static_cast<double>(1 + random_() % 4) / 8;
        for (double& weight : next.weights) weight *= 1 + strength * (static_cast<double>(random_() % 1024) / 512 - 1);
        break;
      }
      default:
        reweigh(next);
    }
    return next;
  }

  // Gaps that were copied right before a wait, which is drawn by its length, are banned or made less of.
  void reweigh(MoveSettings& next) {
    const std::size_t slot = drawn_slot();
    if (slot == cycle_.size()) return;
    const std::vector<std::uint32_t> before = queued_before(slot);
    if (before.empty()) return;
    const std::size_t many = 1 + random_() % 3;
    for (std::size_t i = 0; i < many; ++i) {
      double& weight = next.weights[best_.plan.moves[before[random_() % before.size()]].gap];
      weight *= random_() % 2 == 0 ? 0 : 0.3;
    }
  }

  // What the next plan may take for granted of the best one's.
  static std::vector<Duration> shortened(std::vector<Duration> waits, double share) {
    for (Duration& wait : waits) wait = from_seconds(share * to_seconds(wait));
    return waits;
  }

  std::size_t drawn_slot() {
    std::int64_t sum = 0;
    for (const Duration wait : replayed_.waits) sum += wait.count();
    if (sum == 0) return cycle_.size();
    auto left = static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(sum));
    std::size_t slot = 0;
    while (left >= replayed_.waits[slot].count()) left -= replayed_.waits[slot++].count();
    return slot;
  }

  // The moves whose copies stood in the same queue before the one that was waited for, the nearest first.
  std::vector<std::uint32_t> queued_before(std::size_t slot) {
    const std::uint32_t waited_for = replayed_.for_move[slot];
    if (waited_for == ReplayedCycle::kNone) return {};
    const std::int64_t turn = cycle_.size();
    const PlannedMove& last = best_.plan.moves[waited_for];
    const bool out = modulo(last.drop, turn) == static_cast<std::int64_t>(slot);
    const std::int64_t at = modulo(out ? last.copy : last.fetch, turn);
    if (out && last.copy == PlannedMove::kNoCopy) return {};
    std::vector<std::pair<std::int64_t, std::uint32_t>> queue;
    for (std::uint32_t m = 0; m < best_.plan.moves.size(); ++m) {
      const PlannedMove& move = best_.plan.moves[m];
      if (out && move.copy == PlannedMove::kNoCopy) continue;
      queue.emplace_back(modulo(at - modulo(out ? move.copy : move.fetch, turn), turn), m);
    }
    const std::size_t many = std::min(random_() % 2 == 0 ? kNearest : kReach, queue.size());
    std::partial_sort(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(many), queue.end());
    std::vector<std::uint32_t> nearest;
    std::vector<std::uint32_t> useless;
    for (std::size_t i = 0; i < many; ++i) {
      nearest.push_back(queue[i].second);
      if (!is_away(best_.plan.moves[queue[i].second], static_cast<std::int64_t>(slot))) useless.push_back(queue[i].second);
    }
    return useless.empty() || random_() % 4 == 0 ? nearest : useless;
  }

  bool is_away(const PlannedMove& move, std::int64_t slot) const {
    const std::int64_t turn = cycle_.size();
    return (move.drop <= slot && slot < move.fetch) || (move.drop <= slot + turn && slot + turn < move.fetch);
  }

  const StepCycle& cycle_;
  const CycleLinks& links_;
  const Bytes budget_;
  const MovesBound& bound_;
  std::mt19937_64 random_{20};
  double worth_ = 0;
  FoundMoves best_;
  MoveSettings settings_;
  ReplayedCycle replayed_;
  std::vector<Duration> last_waits_;  // of the last plan that fits
  std::vector<double> base_weights_;
};

}  // namespace

FoundMoves find_moves(const StepCycle& cycle, const CycleLinks& links, Bytes budget, const MovesBound& bound,
                      const SearchEffort& effort) {
  return Search(cycle, links, budget, bound).run(effort);
}

}  // namespace memwall
