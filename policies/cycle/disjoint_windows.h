// Windows of waiting times of one turn, and which disjoint ones of them are most together. Internal to policies/cycle.
#pragma once

#include <cstdint>
#include <vector>

#include "policies/cycle/moves_bound.h"

namespace memwall {

// Of windows of at most a turn that end in slots 0 <= to <= turn those within which no other waits as long, ascending
// by `to` and then the shortest first.
std::vector<BindingWindow> undominated_windows(const std::vector<BindingWindow>& windows, std::int64_t turn);

// Where a turn is best cut: at the one place that no window crosses, with which all sets of disjoint windows are looked at;
// where there is none, at places spread over the turn, and at the ends of the window that waits longest.
std::vector<std::int64_t> cuts_of(const std::vector<BindingWindow>& windows, std::int64_t turn);

// Of windows between the end of slot `cut` - 1 and a turn later, disjoint ones whose waits are most together. The
// windows ascend by the slots at which they end, in one turn.
class DisjointWindows {
 public:
  // `windows`: of undominated_windows(); they have to outlive it.
  DisjointWindows(const std::vector<BindingWindow>& windows, std::int64_t turn);

  // Seconds of the waits together.
  double most(std::int64_t cut);

  // Those whose waits are most(cut), ascending.
  std::vector<BindingWindow> chosen(std::int64_t cut);

 private:
  struct End {
    std::int32_t to = 0, length = 0;
    double wait = 0;
  };
  std::int64_t node_of(std::int64_t to, std::int64_t cut) const { return to - cut + (to > cut ? 0 : turn_); }

  // Windows behind the cut in their order: number, nodes, wait.
  template <typename Visit>
  void each(std::int64_t cut, Visit visit) const;

  const std::vector<BindingWindow>& windows_;
  const std::int64_t turn_;
  std::vector<End> ends_;
  std::vector<double> most_;  // by node from `cut`: the most that windows wait that end there or before
  std::vector<std::size_t> last_;
};

}  // namespace memwall
