#include "policies/cycle/shortest_turn.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace memwall {
namespace {

constexpr double kPartThatIsRounding = 1e-13;
// Each pass but the first few finds a cycle or is the last; this many are never seen.
constexpr int kMostPasses = 10'000;

}  // namespace

ShortestTurn::ShortestTurn(std::size_t events, const std::vector<TurnConstraint>& constraints)
    : constraints_(constraints), times_(events), last_(events), seen_(events) {
  for (const TurnConstraint& one : constraints) smallest_ += std::abs(one.seconds);
  smallest_ *= kPartThatIsRounding;
}

double ShortestTurn::solve(double at_least) {
  double turn = at_least;
  binding_.clear();
  std::fill(times_.begin(), times_.end(), 0.0);
  std::fill(last_.begin(), last_.end(), kNone);
  for (int pass = 0; pass < kMostPasses && relax(turn); ++pass) {
    if (pass == 0 || !find_cycle()) continue;
    double seconds = 0;
    std::int64_t turns = 0;
    for (const std::uint32_t c : cycle_) seconds += constraints_[c].seconds, turns += constraints_[c].turns;
    binding_ = cycle_;
    if (turns <= 0) return std::numeric_limits<double>::infinity();
    const double longer = seconds / static_cast<double>(turns);
    if (longer <= turn) break;
    turn = longer;
    std::fill(times_.begin(), times_.end(), 0.0);
    std::fill(last_.begin(), last_.end(), kNone);
  }
  return turn;
}

// False: every constraint is kept.
bool ShortestTurn::relax(double turn) {
  bool changed = false;
  for (std::uint32_t c = 0; c < constraints_.size(); ++c) {
    const TurnConstraint& one = constraints_[c];
    const double time = times_[one.from] + one.seconds - static_cast<double>(one.turns) * turn;
    if (time <= times_[one.to] + smallest_) continue;
    times_[one.to] = time;
    last_[one.to] = c;
    changed = true;
  }
  work_ += constraints_.size();
  return changed;
}

// Among the constraints that set times: these need a longer turn.
bool ShortestTurn::find_cycle() {
  std::fill(seen_.begin(), seen_.end(), 0u);
  for (std::uint32_t first = 0; first < constraints_.size(); ++first) {
    std::uint32_t event = constraints_[first].to;
    while (seen_[event] == 0 && last_[event] != kNone) {
      seen_[event] = first + 1;
      event = constraints_[last_[event]].from;
    }
    if (last_[event] == kNone || seen_[event] != first + 1) continue;
    cycle_.clear();
    const std::uint32_t begin = event;
    do {
      cycle_.push_back(last_[event]);
      event = constraints_[last_[event]].from;
    } while (event != begin);
    return true;
  }
  return false;
}

}  // namespace memwall
