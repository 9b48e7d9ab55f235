#include "policies/cycle/copies_of_turn.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

namespace memwall {
namespace {

constexpr double kSameSeconds = 1e-12;
// Turns that are scheduled to learn in which order copies go once turns repeat.
constexpr std::int32_t kTurns = 4, kJudged = 2;

// Numbers events, and copies behind them, as constraints have them.
class CopyConstraints {
 public:
  explicit CopyConstraints(const TurnOfCopies& turn) : turn_(turn) {
    for (const TurnWindow& window : turn.windows) add(window);
  }

  std::uint32_t events() const { return number(1, static_cast<std::uint32_t>(turn_.copies[1].size())); }

  // Of each direction: between a release and a deadline, all that has to begin and end there.
  void add_windows() {
    std::vector<std::pair<std::int32_t, double>> ending;  // deadlines, seconds
    for (const std::vector<TurnCopy>& copies : turn_.copies)
      for (std::size_t first = 0; first < copies.size(); ++first) {
        const std::int32_t from = copies[first].release;
        if (std::any_of(copies.begin(), copies.begin() + static_cast<std::ptrdiff_t>(first),
                        [&](const TurnCopy& other) { return other.release == from; }))
          continue;
        ending.clear();
        for (const TurnCopy& one : copies)
          ending.emplace_back(one.deadline + (one.release < from ? turn_.events() : 0), one.seconds);
        std::sort(ending.begin(), ending.end());
        double seconds = 0;
        for (std::size_t i = 0; i < ending.size(); ++i) {
          seconds += ending[i].second;
          if (i + 1 == ending.size() || ending[i + 1].first > ending[i].first)
            add(TurnWindow{from, ending[i].first, seconds});
        }
      }
  }

  // Each copy by itself.
  void add_copies() {
    for (std::size_t d = 0; d < 2; ++d)
      for (std::uint32_t i = 0; i < turn_.copies[d].size(); ++i) {
        const TurnCopy& one = turn_.copies[d][i];
        constraints_.push_back({static_cast<std::uint32_t>(one.release), number(d, i), 0, 0});
        const auto [event, turns] = of_turn(one.deadline);
        constraints_.push_back({number(d, i), event, turns, one.seconds});
      }
  }

  void add(const CopyPrecedence& p) {
    constraints_.push_back(
        {number(p.direction, p.first), number(p.direction, p.second), p.turns, seconds(p.direction, p.first)});
    constraints_.push_back(
        {number(p.direction, p.second), number(p.direction, p.first), 1 - p.turns, seconds(p.direction, p.second)});
  }

  // Each behind the one before, and the first behind the last of the turn before.
  void add(std::uint8_t direction, const std::vector<CopyPlace>& order) {
    begins_[direction] = constraints_.size();
    for (std::size_t i = 0; i < order.size(); ++i) {
      const CopyPlace& here = order[i];
      const CopyPlace& next = order[i + 1 < order.size() ? i + 1 : 0];
      const std::int32_t turns = next.turn - here.turn + (i + 1 < order.size() ? 0 : 1);
      constraints_.push_back(
          {number(direction, here.copy), number(direction, next.copy), turns, seconds(direction, here.copy)});
    }
  }
  // Behind solve(): the places in the order whose copies bind, each with the next.
  std::vector<std::size_t> binding(std::uint8_t direction, std::size_t places) const {
    std::vector<std::size_t> all;
    for (const std::uint32_t one : binding_)
      if (one >= begins_[direction] && one < begins_[direction] + places) all.push_back(one - begins_[direction]);
    return all;
  }

  // Adds what it took to `work`.
  double solve(double at_least, std::uint64_t& work) {
    if (constraints_.empty()) return at_least;
    add_slots();
    ShortestTurn shortest(events(), constraints_);
    const double seconds = shortest.solve(at_least);
    work += shortest.work();
    times_ = shortest.times();
    binding_ = shortest.binding();
    return seconds;
  }
  // Behind solve(): of events, where something is released or due.
  const std::vector<double>& times() const { return times_; }

 private:
  std::uint32_t number(std::size_t direction, std::uint32_t copy) const {
    return static_cast<std::uint32_t>(turn_.events()) + copy +
           (direction == 0 ? 0 : static_cast<std::uint32_t>(turn_.copies[0].size()));
  }
  double seconds(std::size_t direction, std::uint32_t copy) const { return turn_.copies[direction][copy].seconds; }
  std::pair<std::uint32_t, std::int32_t> of_turn(std::int32_t event) const {
    return {static_cast<std::uint32_t>(event % turn_.events()), event / turn_.events()};
  }

  // Where slots take as long there is no wait.
  void add(const TurnWindow& window) {
    if (window.seconds <= turn_.seconds_between(window.from, window.to)) return;
    const auto [event, turns] = of_turn(window.to);
    constraints_.push_back({static_cast<std::uint32_t>(window.from), event, turns, window.seconds});
  }

  // Between the events that matter.
  void add_slots() {
    std::vector<std::uint32_t> events;
    for (const TurnConstraint& one : constraints_)
      for (const std::uint32_t event : {one.from, one.to})
        if (event < static_cast<std::uint32_t>(turn_.events())) events.push_back(event);
    std::sort(events.begin(), events.end());
    events.erase(std::unique(events.begin(), events.end()), events.end());
    for (std::size_t i = 0; i < events.size(); ++i) {
      const bool is_last = i + 1 == events.size();
      const auto from = static_cast<std::int32_t>(events[i]),
                 to = static_cast<std::int32_t>(events[is_last ? 0 : i + 1]);
      constraints_.push_back({events[i], events[is_last ? 0 : i + 1], is_last ? 1 : 0,
                              turn_.seconds_between(from, to + (is_last ? turn_.events() : 0))});
    }
  }

  const TurnOfCopies& turn_;
  std::vector<TurnConstraint> constraints_;
  std::array<std::size_t, 2> begins_{};
  std::vector<double> times_;
  std::vector<std::uint32_t> binding_;
};

// What the links alone take for a turn.
double seconds_of_links(const TurnOfCopies& turn) {
  double most = 0;
  for (const std::vector<TurnCopy>& copies : turn.copies) {
    double all = 0;
    for (const TurnCopy& one : copies) all += one.seconds;
    most = std::max(most, all);
  }
  return most;
}

// How many turns later the second may be the first behind the first: least and most.
std::pair<std::int32_t, std::int32_t> possible_turns(const TurnCopy& first, const TurnCopy& second,
                                                     std::int32_t events) {
  const auto floor_of = [&](std::int32_t n) { return n >= 0 ? n / events : -((-n + events - 1) / events); };
  return {floor_of(first.release - second.deadline) + 1, -floor_of(second.release - first.deadline)};
}

// Earliest deadline first, without interruption, for some turns of given length.
class EarliestDeadline {
 public:
  EarliestDeadline(const std::vector<TurnCopy>& copies, const std::vector<CopyPrecedence>& decided,
                   std::uint8_t direction, const std::vector<double>& times, std::int32_t events, double turn)
      : copies_(copies), turn_(turn) {
    for (const CopyPrecedence& p : decided)
      if (p.direction == direction) decided_.push_back(p);
    for (const TurnCopy& one : copies) {
      const auto at = [&](std::int32_t event) {
        return times[static_cast<std::size_t>(event % events)] + event / events * turn;
      };
      release_.push_back(at(one.release));
      deadline_.push_back(at(one.deadline));
    }
    next_.assign(copies.size(), 0);
    begun_.assign(copies.size(), 0);
  }

  std::vector<CopyPlace> order() {
    double now = -std::numeric_limits<double>::infinity();
    for (std::size_t left = copies_.size() * kTurns; left > 0; --left) {
      const std::size_t copy = next_at(now);
      if (copy == copies_.size()) return {};
      now = std::max(now, release(copy)) + copies_[copy].seconds;
      if (next_[copy] == kJudged) begun_[copy] = now - copies_[copy].seconds;
      ++next_[copy];
    }
    std::vector<std::tuple<double, std::uint32_t, std::int32_t>> places;
    for (std::uint32_t i = 0; i < copies_.size(); ++i) {
      const double turns = turn_ > 0 ? std::floor(begun_[i] / turn_) : 0;
      places.emplace_back(begun_[i] - turns * turn_, i, kJudged - static_cast<std::int32_t>(turns));
    }
    std::sort(places.begin(), places.end());
    std::vector<CopyPlace> order;
    for (const auto& [time, copy, turn] : places) order.push_back({copy, turn});
    return order;
  }

 private:
  double release(std::size_t copy) const { return release_[copy] + next_[copy] * turn_; }
  double deadline(std::size_t copy) const { return deadline_[copy] + next_[copy] * turn_; }

  bool is_held_up(std::size_t copy) const {
    return std::any_of(decided_.begin(), decided_.end(), [&](const CopyPrecedence& p) {
      return (p.second == copy && next_[p.first] <= next_[copy] - p.turns && next_[copy] - p.turns < kTurns) ||
             (p.first == copy && next_[p.second] <= next_[copy] - 1 + p.turns && next_[copy] - 1 + p.turns < kTurns);
    });
  }

  // The most urgent of those that may begin now, or of those that may begin first.
  std::size_t next_at(double now) const {
    std::size_t best = copies_.size();
    for (std::size_t i = 0; i < copies_.size(); ++i) {
      if (next_[i] == kTurns || is_held_up(i)) continue;
      const auto key = [&](std::size_t copy) { return std::pair(std::max(now, release(copy)), deadline(copy)); };
      if (best == copies_.size() || key(i) < key(best)) best = i;
    }
    return best;
  }

  const std::vector<TurnCopy>& copies_;
  const double turn_;
  std::vector<CopyPrecedence> decided_;
  std::vector<double> release_, deadline_, begun_;
  std::vector<std::int32_t> next_;  // by copy: its next turn
};

}  // namespace

double TurnOfCopies::least(const std::vector<CopyPrecedence>& decided, double at_least, std::uint64_t& work) const {
  CopyConstraints all(*this);
  all.add_windows();
  if (!decided.empty()) all.add_copies();
  for (const CopyPrecedence& p : decided) all.add(p);
  return all.solve(std::max(at_least, seconds_of_links(*this)), work);
}

OrderedCopies TurnOfCopies::ordered(const std::vector<CopyPrecedence>& decided, double seconds,
                                    std::uint64_t& work) const {
  CopyConstraints before(*this);
  before.add_windows();
  before.add_copies();
  for (const CopyPrecedence& p : decided) before.add(p);
  CopyConstraints behind = before;
  before.solve(seconds, work);

  OrderedCopies result;
  for (const std::uint8_t d : {std::uint8_t{0}, std::uint8_t{1}}) {
    result.order[d] = EarliestDeadline(copies[d], decided, d, before.times(), events(), seconds).order();
    behind.add(d, result.order[d]);
  }
  result.seconds = behind.solve(seconds, work);
  if (result.seconds <= seconds * (1 + kSameSeconds)) return result;
  for (const std::uint8_t d : {std::uint8_t{1}, std::uint8_t{0}}) {
    const std::vector<CopyPlace>& order = result.order[d];
    for (const std::size_t place : behind.binding(d, order.size())) {
      const CopyPlace &here = order[place], &next = order[(place + 1) % order.size()];
      if (here.copy == next.copy) continue;
      const auto [least, most] = possible_turns(copies[d][here.copy], copies[d][next.copy], events());
      const bool is_decided = std::any_of(decided.begin(), decided.end(), [&](const CopyPrecedence& p) {
        return p.direction == d && std::minmax(p.first, p.second) == std::minmax(here.copy, next.copy);
      });
      if (least >= most || is_decided) continue;
      for (std::int32_t turns = least; turns <= most; ++turns)
        result.alternatives.push_back({d, here.copy, next.copy, turns});
      return result;
    }
  }
  return result;
}

}  // namespace memwall
