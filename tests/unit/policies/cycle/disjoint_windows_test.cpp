// The windows that are left out, and the disjoint ones that are found, against all sets of a few windows.
#include "policies/cycle/disjoint_windows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr std::int64_t kTurn = 8;

// Of any disjoint windows of one turn behind the cut the most.
double most_by_trying_all(const std::vector<BindingWindow>& windows, std::int64_t cut) {
  double most = 0;
  for (std::uint32_t set = 0; set < 1u << windows.size(); ++set) {
    std::vector<bool> taken(kTurn, false);
    double sum = 0;
    bool disjoint = true;
    for (std::size_t i = 0; i < windows.size() && disjoint; ++i) {
      if ((set >> i & 1) == 0) continue;
      std::int64_t from = windows[i].from - cut, to = windows[i].to - cut;
      while (to <= 0) from += kTurn, to += kTurn;
      disjoint = from >= 0;
      for (std::int64_t at = from; at < to && disjoint; ++at) {
        disjoint = !taken[static_cast<std::size_t>(at)];
        taken[static_cast<std::size_t>(at)] = true;
      }
      sum += windows[i].wait_seconds;
    }
    if (disjoint) most = std::max(most, sum);
  }
  return most;
}

TEST(DisjointWindows, AreTheMostOfAnySetAlsoWithoutTheDominated) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 300; ++i) {
    std::vector<BindingWindow> windows;
    for (std::size_t w = 0; w < 1 + random() % 9; ++w) {
      BindingWindow window;
      window.to = 1 + static_cast<std::int64_t>(random() % kTurn);
      window.from = window.to - 1 - static_cast<std::int64_t>(random() % kTurn);
      window.out = random() % 2 == 0;
      window.wait_seconds = static_cast<double>(1 + random() % 6);
      windows.push_back(window);
    }
    const std::vector<BindingWindow> kept = undominated_windows(windows, kTurn);
    EXPECT_LE(kept.size(), windows.size());
    DisjointWindows disjoint(kept, kTurn);
    for (std::int64_t cut = 0; cut < kTurn; ++cut) {
      const double most = disjoint.most(cut);
      EXPECT_DOUBLE_EQ(most, most_by_trying_all(windows, cut));
      double sum = 0;
      std::int64_t behind = cut;
      for (const BindingWindow& window : disjoint.chosen(cut)) {
        EXPECT_GE(window.from, behind);
        behind = window.to;
        sum += window.wait_seconds;
      }
      EXPECT_LE(behind, cut + kTurn);
      EXPECT_DOUBLE_EQ(sum, most);
    }
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
