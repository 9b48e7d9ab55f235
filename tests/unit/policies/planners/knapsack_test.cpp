// Are the choices the best that there are? Against all choices.
#include "policies/planners/knapsack.h"

#include <gtest/gtest.h>

#include <random>

namespace memwall {
namespace MEMWALL_TEST_FILE {

double sum(const std::vector<KnapsackItem>& items, const std::vector<bool>& taken, double KnapsackItem::*member) {
  double all = 0;
  for (std::size_t i = 0; i < items.size(); ++i)
    if (taken[i]) all += items[i].*member;
  return all;
}

double best_worth(const std::vector<KnapsackItem>& items, double most) {
  double best = 0;
  for (std::size_t choice = 0; choice < std::size_t{1} << items.size(); ++choice) {
    std::vector<bool> taken;
    for (std::size_t i = 0; i < items.size(); ++i) taken.push_back((choice >> i & 1) != 0);
    if (sum(items, taken, &KnapsackItem::weight) <= most)
      best = std::max(best, sum(items, taken, &KnapsackItem::worth));
  }
  return best;
}

TEST(Knapsack, ExactAndRoundedFindTheBestAndGreedyDoesNotAlways) {
  std::mt19937 random(3);
  std::size_t greedy_is_worse = 0;
  for (int round = 0; round < 200; ++round) {
    std::vector<KnapsackItem> items;
    for (std::size_t i = 0; i < 1 + random() % 10; ++i)
      items.push_back({static_cast<double>(random() % 64) / 64, static_cast<double>(random() % 50)});
    const double most = static_cast<double>(random() % 65) / 64;
    const double best = best_worth(items, most);
    const std::vector<bool> exact = exact_knapsack(items, most), greedy = greedy_knapsack(items, most);
    EXPECT_EQ(sum(items, exact, &KnapsackItem::worth), best);
    EXPECT_LE(sum(items, exact, &KnapsackItem::weight), most);
    EXPECT_LE(sum(items, greedy, &KnapsackItem::weight), most);
    greedy_is_worse += sum(items, greedy, &KnapsackItem::worth) < best ? 1 : 0;
    for (KnapsackItem& item : items) item.weight = static_cast<double>(random() % 100) / 100;  // no rounding
    EXPECT_EQ(sum(items, rounded_knapsack(items, 0.37), &KnapsackItem::worth), best_worth(items, 0.37 + 1e-9));
  }
  EXPECT_GT(greedy_is_worse, 5u);
}

TEST(Knapsack, NothingFitsAndEverythingFits) {
  const std::vector<KnapsackItem> items = {{0.5, 1}, {0.5, 1}, {0, 1}};
  const std::vector<bool> weightless = {false, false, true}, all = {true, true, true};
  for (const auto& knapsack : {greedy_knapsack, rounded_knapsack, exact_knapsack}) {
    EXPECT_EQ(knapsack(items, 0), weightless);
    EXPECT_EQ(knapsack(items, 1), all);
    EXPECT_TRUE(knapsack({}, 1).empty());
  }
}

// More choices than are looked at: still within the weight, and worth nearly as much as taking parts of items.
TEST(Knapsack, ManyItemsOfManySizesComeCloseToTheBound) {
  std::mt19937 random(5);
  std::vector<KnapsackItem> items;
  double weight = 0;
  for (int i = 0; i < 60; ++i) {
    items.push_back({1e6 + static_cast<double>(random() % 1'000'003), 1e3 + static_cast<double>(random() % 1'009)});
    weight += items.back().weight;
  }
  const std::vector<bool> taken = exact_knapsack(items, weight / 2), greedy = greedy_knapsack(items, weight / 2);
  EXPECT_LE(sum(items, taken, &KnapsackItem::weight), weight / 2);
  EXPECT_GE(sum(items, taken, &KnapsackItem::worth), sum(items, greedy, &KnapsackItem::worth));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
