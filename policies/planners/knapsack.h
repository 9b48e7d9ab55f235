// Which of some items are taken, so that they weigh no more than allowed and are worth as much as can be.
#pragma once

#include <cstdint>
#include <vector>

namespace memwall {

struct KnapsackItem {
  double weight = 0, worth = 0;  // neither below 0
};

// By worth per weight, the highest first, each that still fits. By item: is it taken?
std::vector<bool> greedy_knapsack(const std::vector<KnapsackItem>& items, double most);
// Exact for weights rounded to 1/10,000 of 1, as a table of items by weights: for weights and `most` that are shares.
std::vector<bool> rounded_knapsack(const std::vector<KnapsackItem>& items, double most);

// The choices of items that no other one surpasses, from which the best is read for any weight that is allowed.
class ChoicesByWeight {
 public:
  // Of at most the weight `most`. Where they are more than 100,000 at a time, one in each of as many steps of `most`.
  ChoicesByWeight(const std::vector<KnapsackItem>& items, double most);
  // Exact, but for those steps. `most`: no more than that of all.
  std::vector<bool> best(double most) const;

  // The last item taken, and the choice before it.
  struct Choice {
    static constexpr std::uint32_t kNothing = 0xffffffff;
    double weight = 0, worth = 0;
    std::uint32_t item = kNothing, before = kNothing;
  };

 private:
  std::vector<Choice> all_;           // that ever were among them
  std::vector<std::uint32_t> front_;  // indices into all_; ascending by weight and worth
  std::vector<bool> taken_;           // by item: none
};

std::vector<bool> exact_knapsack(const std::vector<KnapsackItem>& items, double most);

}  // namespace memwall
