// The shortest turn of events that repeat, where some come so long behind others: the largest ratio, over cycles of
// these constraints, of their seconds to the turns that they span. Internal to policies/cycle.
//
// Method: Lawler, Combinatorial Optimization: Networks and Matroids (1976), chapter 3.13, where the ratio of a cycle
// that is found takes the place of bisection. (Dasdan, ACM TODAES 9(4), 2004, compares what is known.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace memwall {

// Event `to`, so many turns later, is no earlier than `seconds` behind event `from`.
struct TurnConstraint {
  std::uint32_t from = 0, to = 0;
  std::int32_t turns = 0;
  double seconds = 0;
};

class ShortestTurn {
 public:
  // Constraints go from events to later ones mostly in the order in which they stand: sorted so, little is looked at
  // twice. All refer to events below `events`.
  ShortestTurn(std::size_t events, const std::vector<TurnConstraint>& constraints);

  // The least turn of at least so many seconds; infinite where events would come behind themselves. Where rounding
  // keeps it from an end, less than the least.
  double solve(double at_least);

  // Behind solve(): the earliest times of the events in a turn of that length.
  const std::vector<double>& times() const { return times_; }
  // The constraints, by their place, of the cycle that binds. Empty: `at_least` does.
  const std::vector<std::uint32_t>& binding() const { return binding_; }
  // Constraints looked at so far.
  std::uint64_t work() const { return work_; }

 private:
  bool relax(double turn);
  bool find_cycle();

  static constexpr std::uint32_t kNone = 0xffffffff;
  const std::vector<TurnConstraint>& constraints_;
  double smallest_ = 0;  // difference that is none of rounding
  std::vector<double> times_;
  std::vector<std::uint32_t> last_;  // by event: the constraint that sets its time
  std::vector<std::uint32_t> seen_;  // by event, while cycles are looked for
  std::vector<std::uint32_t> cycle_, binding_;
  std::uint64_t work_ = 0;
};

}  // namespace memwall
