#include "policies/cycle/move_search.h"

#include <algorithm>

#include "policies/cycle/binding_windows.h"
#include "policies/cycle/move_repair.h"

namespace memwall {
namespace {

// A plan so near to the bound is not searched on.
constexpr double kNear = 1.0005;
// Waits are planned for copies that may be cut: in the end they may be shorter.
constexpr double kWaitSlack = 2, kLeastSlack = 1e-3;
// Where the first plan's turn is longer by more than this, waits from none are not worth a try.
constexpr double kShortWaits = 1.3;
constexpr double kKeptWaits = 0.95, kFewerWaits = 0.8;
// Rounds of a plan that begins with the waits of another, or need not be found.
constexpr int kFewRounds = 8;
// Of a plan that goes on where it was: MoveSettings::goes_on. Its rounds take little time.
constexpr int kQuickRounds = 12;
// Where waits of the first plan are so many times those that are worth it, another one is not asked for.
constexpr double kHopeless = 1.5;
constexpr double kQuickNearness = 0.8;
// Of repairs there are as many as take about a second: each takes the longer the more slots there are. The search ends
// where most of them in a row did not make the turn shorter by this.
constexpr std::size_t kSlotsInAll = 150'000, kFewestRepairs = 24;
constexpr double kBetter = 0.9995;
// Another plan is nearly as good where its turn takes at most so many times as long.
constexpr double kAlike = 1.02;
// MoveSchedule::work, of which a second does about this much, and what each slot takes beside it. More is done only
// where nothing fits yet.
constexpr std::uint64_t kMostWork = 1'200'000, kMostToFit = 5'000'000, kWorkOfSlot = 3;

class Search {
 public:
  Search(const StepCycle& cycle, const CycleLinks& links, Bytes budget, const MovesBound& bound)
      : cycle_(cycle),
        links_(links),
        budget_(budget),
        bound_(bound),
        base_weights_(weights_by_windows(cycle, bound)),
        scheduler_(cycle, links, budget),
        least_(bound.seconds) {}

  FoundMoves run(const SearchEffort& effort) {
    worth_ = effort.worth_seconds;
    most_others_ = effort.others;
    search(effort);
    drop_slow_others();
    return std::move(found_);
  }

 private:
  void search(const SearchEffort& effort) {
    MoveSettings settings;
    settings.finest = effort.finest;
    settings.goes_on = effort.goes_on;
    begin(settings);
    if (settings.goes_on && found_.fits && found_.seconds > kHopeless * worth_) return;
    compare(settings, effort.settings);
    if (effort.repairs == 0) return;
    fill(settings);
    repair(effort.repairs);
  }

  bool is_done() const { return found_.fits && found_.seconds <= least_ * kNear; }
  bool is_long() const { return found_.work > (found_.fits ? kMostWork : kMostToFit); }

  // A plan that fits, to learn where the device has to wait; then one from no waits at all, where those are short.
  void begin(MoveSettings settings) {
    settings.farthest = true;
    attempt(settings);
    if (is_done() || (found_.fits && found_.seconds > kShortWaits * to_seconds(cycle_.turn()))) return;
    settings.farthest = false;
    settings.margin = 4, settings.nearness = 0.9;
    if (found_.fits) settings.rounds = kFewRounds;
    attempt(settings);
  }

  // So many settings of a portfolio at most, with the waits of the best plan so far.
  void compare(MoveSettings settings, std::uint32_t most) {
    std::uint32_t asked = 0;
    for (const bool by_area : {false, true})
      for (const double margin : {4.0, 1.0, 8.0, 2.0})
        for (const std::uint32_t look_ahead : {1u, 8u}) {
          if (asked++ >= most || is_done() || is_long()) return;
          if (found_.fits)
            settings.waits = shortened(best_.replayed.waits, kKeptWaits),
            settings.rounds = settings.goes_on ? kQuickRounds : kFewRounds;
          settings.margin = margin, settings.look_ahead = look_ahead, settings.by_area = by_area;
          settings.nearness = settings.goes_on ? kQuickNearness : asked % 2 == 0 ? 0.85 : 0.9;
          settings.weights = asked % 2 == 0 ? base_weights_ : std::vector<double>(base_weights_.size(), 1);
          attempt(settings);
        }
  }

  // With what fills the windows that bind away before all else.
  void fill(MoveSettings settings) {
    settings.first = gaps_filling_windows(cycle_, bound_, budget_);
    if (settings.first.empty()) return;
    settings.nearness = 0.9, settings.rounds = kFewRounds;
    settings.weights = base_weights_;
    for (const double share : {kKeptWaits, kFewerWaits})
      for (const double margin : {1.0, 4.0}) {
        if (!found_.fits || is_done() || is_long()) return;
        settings.margin = margin;
        settings.waits = shortened(best_.replayed.waits, share);
        attempt(settings);
      }
  }

  void repair(std::uint32_t repairs) {
    MoveRepair repair(cycle_, base_weights_);
    double last = found_.seconds;
    std::uint32_t in_vain = 0;
    // In a cycle of few slots a repair takes little time.
    const auto most = static_cast<std::uint32_t>(
        std::min<std::size_t>(repairs, std::max(kSlotsInAll / cycle_.size(), kFewestRepairs)));
    for (std::uint32_t i = 0; i < most && found_.fits && !is_done() && !is_long() && in_vain < most * 3 / 4; ++i) {
      attempt(repair.next(best_, last_waits_));
      in_vain = found_.seconds < last * kBetter ? 0 : in_vain + 1;
      if (in_vain == 0) last = found_.seconds;
    }
  }

  void attempt(MoveSettings settings) {
    const double wait = std::min(worth_, found_.fits ? found_.seconds : worth_) - to_seconds(cycle_.turn());
    settings.longest_wait = from_seconds(std::min(1e6, kWaitSlack * std::max(0.0, wait) + kLeastSlack));
    MoveSchedule schedule = scheduler_.schedule(settings);
    ++found_.tried;
    found_.work += schedule.work + kWorkOfSlot * cycle_.size();
    if (!schedule.fits) {
      if (!found_.fits) found_.over = schedule.over;
      return;
    }
    const std::vector<Bytes> live = live_under(cycle_, schedule.plan);
    if (*std::max_element(live.begin(), live.end()) > budget_ || !is_sound(cycle_, schedule.plan)) return;
    ReplayedCycle replayed = replay_cycle(cycle_, links_, schedule.plan);
    const double seconds = to_seconds(replayed.turn);
    last_waits_ = replayed.waits;
    if (found_.fits && seconds > found_.seconds) return keep({seconds, std::move(schedule.plan)});
    if (found_.fits) keep({found_.seconds, std::move(found_.plan)});
    found_.fits = true;
    found_.seconds = seconds;
    found_.plan = schedule.plan;
    best_ = {std::move(schedule.plan), std::move(settings), std::move(replayed)};
  }

  // The best of those that are no worse by much than the best of all; of equal turns one, as most of these are equal.
  void keep(ReplayedMoves other) {
    if (most_others_ == 0) return;
    std::vector<ReplayedMoves>& others = found_.others;
    const auto at = std::ranges::lower_bound(others, other.seconds, {}, &ReplayedMoves::seconds);
    if (at != others.end() && at->seconds == other.seconds) return;
    others.insert(at, std::move(other));
    if (others.size() > most_others_) others.pop_back();
  }

  void drop_slow_others() {
    std::erase_if(found_.others, [&](const ReplayedMoves& one) {
      return one.seconds == found_.seconds || one.seconds > found_.seconds * kAlike;
    });
  }

  const StepCycle& cycle_;
  const CycleLinks& links_;
  const Bytes budget_;
  const MovesBound& bound_;
  const std::vector<double> base_weights_;
  const MoveScheduler scheduler_;
  double least_;  // seconds that no plan is below
  double worth_ = 0;
  std::size_t most_others_ = 0;
  FoundMoves found_;
  TriedMoves best_;                   // found_.plan
  std::vector<Duration> last_waits_;  // of the last plan that fits
};

}  // namespace

FoundMoves find_moves(const StepCycle& cycle, const CycleLinks& links, Bytes budget, const MovesBound& bound,
                      const SearchEffort& effort) {
  return Search(cycle, links, budget, bound).run(effort);
}

}  // namespace memwall
