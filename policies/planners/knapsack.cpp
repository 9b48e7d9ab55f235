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
constexpr std::uint32_t kNothing = ChoicesByWeight::Choice::kNothing;

double per_weight(const KnapsackItem& item) {
  return item.weight > 0 ? item.worth / item.weight : std::numeric_limits<double>::infinity();
}

using Choice = ChoicesByWeight::Choice;

// Of both, which ascend in weight, those that no other surpasses: what weighs more than another and is worth no more
// goes. At most one in each of kMostChoices parts of `most`.
std::vector<Choice> unsurpassed(const std::vector<Choice>& without, const std::vector<Choice>& with, double most) {
  std::vector<Choice> kept;
  kept.reserve(without.size() + with.size());
  const auto keep = [&](const Choice& choice) {
    if (kept.empty() || choice.worth > kept.back().worth) kept.push_back(choice);
  };
  std::size_t next = 0;
  for (const Choice& choice : without) {
    for (; next < with.size() && (with[next].weight < choice.weight ||
                                  (with[next].weight == choice.weight && with[next].worth > choice.worth));
         ++next)
      keep(with[next]);
    keep(choice);
  }
  for (; next < with.size(); ++next) keep(with[next]);
  if (kept.size() > kMostChoices) {
    std::vector<Choice> coarse;
    const auto part = [&](const Choice& c) { return std::floor(c.weight / most * static_cast<double>(kMostChoices)); };
    for (const Choice& choice : kept)
      if (coarse.empty() || part(coarse.back()) != part(choice)) coarse.push_back(choice);
    kept = std::move(coarse);
  }
  return kept;
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

ChoicesByWeight::ChoicesByWeight(const std::vector<KnapsackItem>& items, double most)
    : all_{Choice{}}, front_{0}, taken_(items.size(), false) {
  for (std::uint32_t i = 0; i < items.size(); ++i) {
    std::vector<Choice> without, with;
    for (const std::uint32_t at : front_) {
      without.push_back({all_[at].weight, all_[at].worth, kNothing, at});
      const double weight = all_[at].weight + items[i].weight;
      if (weight <= most) with.push_back({weight, all_[at].worth + items[i].worth, i, at});
    }
    const std::vector<Choice> next = unsurpassed(without, with, most);
    front_.clear();
    for (const Choice& choice : next) {
      if (choice.item == kNothing) {
        front_.push_back(choice.before);
        continue;
      }
      front_.push_back(static_cast<std::uint32_t>(all_.size()));
      all_.push_back(choice);
    }
  }
}

std::vector<bool> ChoicesByWeight::best(double most) const {
  const auto behind =
      std::partition_point(front_.begin(), front_.end(), [&](std::uint32_t at) { return all_[at].weight <= most; });
  std::vector<bool> taken = taken_;
  if (behind == front_.begin()) return taken;
  for (std::uint32_t at = *(behind - 1); all_[at].item != kNothing; at = all_[at].before) taken[all_[at].item] = true;
  return taken;
}

std::vector<bool> exact_knapsack(const std::vector<KnapsackItem>& items, double most) {
  return ChoicesByWeight(items, most).best(most);
}

}  // namespace memwall
