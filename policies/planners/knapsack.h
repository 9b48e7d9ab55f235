// Which of some items are taken, so that they weigh no more than allowed and are worth as much as can be.
#pragma once

#include <vector>

namespace memwall {

struct KnapsackItem {
  double weight = 0, worth = 0;  // neither below 0
};

// By worth per weight, the highest first, each that still fits. By item: is it taken?
std::vector<bool> greedy_knapsack(const std::vector<KnapsackItem>& items, double most);
// Exact for weights rounded to 1/10,000 of 1, as a table of items by weights: for weights and `most` that are shares.
std::vector<bool> rounded_knapsack(const std::vector<KnapsackItem>& items, double most);
// Exact, by the choices that no other one surpasses in both. Where these are more than 100,000 at a time, to within as
// many steps of `most`.
std::vector<bool> exact_knapsack(const std::vector<KnapsackItem>& items, double most);

}  // namespace memwall
