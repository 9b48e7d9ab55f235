#include "policies/planners/knapsack.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>

namespace memwall {
namespace {

constexpr double kSteps = 10'000;              // of a share
constexpr std::size_t kMostChoices = 100'000;  // that are looked at side by side
constexpr std::uint32_t kNothing = 0xffffffff;

double per_weight(const KnapsackItem& item) {
  return item.weight > 0 ? item.worth / item.weight : std::numeric_limits<double>::infinity();
}

// The last item taken, and the choice before it.
struct Choice {
  double weight = 0, worth = 0;
  std::uint32_t item = kNothing, before = kNothing;
};

// Ascending in weight and in worth: what weighs more than another and is worth no more goes. At most one in each of
// `steps` parts of `most`.
void keep_unsurpassed(std::vector<Choice>& choices, double most) {
  std::ranges::stable_sort(choices, [](const Choice& a, const Choice& b) {
    return a.weight != b.weight ? a.weight < b.weight : a.worth > b.worth;
  });
  std::vector<Choice> kept;
  for (const Choice& choice : choices)
    if (kept.empty() || choice.worth > kept.back().worth) kept.push_back(choice);
  if (kept.size() > kMostChoices) {
    std::vector<Choice> coarse;
    const auto part = [&](const Choice& c) { return std::floor(c.weight / most * static_cast<double>(kMostChoices)); };
    for (const Choice& choice : kept)
      if (coarse.empty() || part(coarse.back()) != part(choice)) coarse.push_back(choice);
    kept = std::move(coarse);
  }
  choices = std::move(kept);
}

}  // namespace

std::vector<bool> greedy_knapsack(const std::vector<KnapsackItem>& items, double most) {
  std::vector<std::size_t> order(items.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater{}, [&](std::size_t i) { return per_weight(items[i]); });
  std::vector<bool> taken(items.size(), false);
  double weight = 0;
  for (const std::size_t i : order) {
    if (weight + items[i].weight > most) continue;
    weight += items[i].weight;
    taken[i] = true;
  }
  return taken;
}

std::vector<bool> rounded_knapsack(const std::vector<KnapsackItem>& items, double most) {
  const auto rounded = [](double share) { return static_cast<std::size_t>(std::nearbyint(share * kSteps)); };
  const std::size_t columns = rounded(most) + 1;
  std::vector<double> worth(columns, 0);
  std::vector<std::vector<bool>> better(items.size(), std::vector<bool>(columns, false));  // with the item
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::size_t weight = rounded(items[i].weight);
    for (std::size_t j = columns; j-- > weight;) {
      const double with = worth[j - weight] + items[i].worth;
      if (with <= worth[j]) continue;
      better[i][j] = true;
      worth[j] = with;
    }
  }
  std::vector<bool> taken(items.size(), false);
  std::size_t column = columns - 1;
  for (std::size_t i = items.size(); i-- > 0;) {
    if (!better[i][column]) continue;
    taken[i] = true;
    column -= rounded(items[i].weight);
  }
  return taken;
}

std::vector<bool> exact_knapsack(const std::vector<KnapsackItem>& items, double most) {
  std::vector<Choice> all = {Choice{}};  // every choice that ever stood in the front
  std::vector<std::uint32_t> front = {0};
  for (std::uint32_t i = 0; i < items.size(); ++i) {
    std::vector<Choice> next;
    for (const std::uint32_t at : front) {
      next.push_back({all[at].weight, all[at].worth, kNothing, at});
      const double weight = all[at].weight + items[i].weight;
      if (weight <= most) next.push_back({weight, all[at].worth + items[i].worth, i, at});
    }
    keep_unsurpassed(next, most);
    front.clear();
    for (const Choice& choice : next) {
      if (choice.item == kNothing) {
        front.push_back(choice.before);
        continue;
      }
      front.push_back(static_cast<std::uint32_t>(all.size()));
      all.push_back(choice);
    }
  }
  std::vector<bool> taken(items.size(), false);
  for (std::uint32_t at = front.back(); all[at].item != kNothing; at = all[at].before) taken[all[at].item] = true;
  return taken;
}

}  // namespace memwall
