// The least that bytes of a window cost, each made again or waited for. Internal to policies/cycle.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace memwall {

// What is made again costs by price, the lowest first, as items come in: sums by the rank of their prices, in Fenwick
// trees.
class CheapestReruns {
 public:
  // `prices`: by rank, ascending; `rate`: of the link beside.
  CheapestReruns(const std::vector<double>& prices, double rate)
      : prices_(prices),
        rate_(rate),
        below_link_(
            static_cast<std::size_t>(std::lower_bound(prices.begin(), prices.end(), 1 / rate) - prices.begin())) {
    clear();
  }
  void clear() { sums_.assign(prices_.size() + 1, {}); }

  void add(std::uint32_t rank, double bytes) {
    const double cost = bytes * prices_[rank];
    for (std::size_t i = rank + 1; i < sums_.size(); i += i & (~i + 1)) {
      sums_[i].bytes += bytes;
      sums_[i].cost += cost;
    }
  }

  // And its derivatives: by the open bytes, and by the rate.
  struct Cost {
    double seconds = 0, per_byte = 0, per_rate = 0;
  };

  // Least seconds for which `open` bytes need no time of the link any more, or have it. `link_goes_on`: the re-runs
  // take place where the link is short of time, and it carries others meanwhile.
  Cost cost(double open, bool link_goes_on) const {
    const std::size_t most = link_goes_on ? prices_.size() : below_link_;
    const double beside = link_goes_on ? rate_ : 0;  // bytes that a second of re-runs gives the link
    Sum sum;
    std::size_t at = 0;
    for (std::size_t step = std::bit_floor(most); step > 0; step /= 2) {
      if (at + step > most) continue;
      const Sum with{sum.bytes + sums_[at + step].bytes, sum.cost + sums_[at + step].cost};
      if (with.bytes + beside * with.cost <= open) at += step, sum = with;
    }
    open = std::max(0.0, open - (sum.bytes + beside * sum.cost));
    const double again = at < most ? prices_[at] / (1 + beside * prices_[at]) : 1 / rate_;
    const double price = std::min(again, 1 / rate_);
    const bool by_rate = link_goes_on || price < again || at >= most;
    const double slope = by_rate ? -price * price : 0;  // of the price, by the rate
    return {sum.cost + open * price, price, open * slope - (link_goes_on ? sum.cost * price : 0)};
  }

 private:
  struct Sum {
    double bytes = 0, cost = 0;
  };
  const std::vector<double>& prices_;
  const double rate_;
  const std::size_t below_link_;  // prices below that of the link
  std::vector<Sum> sums_;
};

}  // namespace memwall
