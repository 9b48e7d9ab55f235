// Finding the smallest arena is NP-hard (dynamic storage allocation), so several greedy orders are tried. Two of them
// play an allocator that goes through time, forward and backward; they cost little. The others place the storages one
// by one in an order of importance, each in the tightest gap that is free during all of its life: the gaps are found
// in a tree over time whose nodes know which offsets are taken (OccupancyTree). By length comes first: in a training
// step most lives contain others or are apart, and then the longest below is best; it also leaves few gaps to look at.
// These orders stop when a budget of work is used up, so that a hundred thousand lifetimes take a fraction of a second;
// the budget counts steps and not time, so that equal input gives equal plans.
#include "sim/memory/arena_plan.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <numeric>
#include <optional>

#include "sim/memory/range_set.h"
#include "sim/memory/rounding.h"

namespace memwall {
namespace {

constexpr Bytes kEndless = Bytes{1} << 62;
// Intervals looked at, of all orders together.
constexpr std::uint64_t kBudget = 3'000'000;

// A lifetime in ranks: it covers those begins of lifetimes that lie in it. Two lifetimes share an instant exactly if
// the later begin lies in both, so nothing is lost.
struct Item {
  std::uint32_t begin = 0, end = 0;
  Bytes bytes = 0;
  std::uint32_t index = 0;  // of the lifetime
};

struct Packing {
  std::vector<Bytes> offsets;  // by index of the lifetime
  Bytes size = 0;
};

struct Problem {
  std::vector<Item> items;     // those that take anything, by begin
  std::uint32_t instants = 0;  // ranks
};

Problem ranked(const std::vector<Lifetime>& lifetimes, Bytes alignment) {
  std::vector<std::uint64_t> begins;
  for (const Lifetime& l : lifetimes)
    if (l.bytes > 0 && l.begin < l.end) begins.push_back(l.begin);
  std::sort(begins.begin(), begins.end());
  begins.erase(std::unique(begins.begin(), begins.end()), begins.end());
  const auto rank = [&](std::uint64_t instant) {
    return static_cast<std::uint32_t>(std::lower_bound(begins.begin(), begins.end(), instant) - begins.begin());
  };
  Problem problem;
  problem.instants = static_cast<std::uint32_t>(begins.size());
  for (std::uint32_t i = 0; i < lifetimes.size(); ++i) {
    const Lifetime& l = lifetimes[i];
    if (l.bytes > 0 && l.begin < l.end)
      problem.items.push_back({rank(l.begin), rank(l.end), round_up(l.bytes, alignment), i});
  }
  std::sort(problem.items.begin(), problem.items.end(), [](const Item& a, const Item& b) {
    if (a.begin != b.begin) return a.begin < b.begin;
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.index < b.index;
  });
  return problem;
}

Bytes most_at_once(const Problem& problem) {
  std::vector<Bytes> change(problem.instants + 1u, 0);
  for (const Item& item : problem.items) {
    change[item.begin] += item.bytes;
    change[item.end] -= item.bytes;
  }
  Bytes live = 0, most = 0;
  for (const Bytes bytes : change) most = std::max(most, live += bytes);
  return most;
}

// What lives from the first instant to the last stands at the bottom: no plan is worse for it. Returns its bytes.
Bytes place_permanent(Problem& problem, Packing& base) {
  std::erase_if(problem.items, [&](const Item& item) {
    if (item.begin != 0 || item.end != problem.instants) return false;
    base.offsets[item.index] = base.size;
    base.size += item.bytes;
    return true;
  });
  return base.size;
}

// An allocator with perfect joining that goes through time: best fit, lowest address.
Packing swept(const Problem& problem, const Packing& base, bool backward) {
  std::vector<Item> items = problem.items;
  if (backward) {
    for (Item& item : items)
      item = {problem.instants - item.end, problem.instants - item.begin, item.bytes, item.index};
    std::stable_sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.begin < b.begin; });
  }
  std::vector<std::uint32_t> by_end(items.size());
  std::iota(by_end.begin(), by_end.end(), 0u);
  std::stable_sort(by_end.begin(), by_end.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return items[a].end < items[b].end; });
  Packing packing = base;
  RangeSet free;
  free.insert({static_cast<Address>(base.size), kEndless});
  std::size_t ended = 0;
  for (const Item& item : items) {
    for (; ended < by_end.size() && items[by_end[ended]].end <= item.begin; ++ended) {
      const Item& gone = items[by_end[ended]];
      free.insert({static_cast<Address>(packing.offsets[gone.index]), gone.bytes});
    }
    const RangeSet::Range place = *free.best_fit(item.bytes);
    free.erase({place.begin, item.bytes});
    packing.offsets[item.index] = static_cast<Bytes>(place.begin);
    packing.size = std::max(packing.size, static_cast<Bytes>(place.begin) + item.bytes);
  }
  return packing;
}

// Offsets taken: intervals that are apart, ascending.
class Cover {
 public:
  struct Interval {
    Bytes begin = 0, end = 0;
  };

  void insert(Interval added) {
    // Those that touch it become one with it.
    const auto first = std::lower_bound(intervals_.begin(), intervals_.end(), added.begin,
                                        [](const Interval& i, Bytes at) { return i.end < at; });
    auto last = first;
    while (last != intervals_.end() && last->begin <= added.end) {
      added = {std::min(added.begin, last->begin), std::max(added.end, last->end)};
      ++last;
    }
    if (first == last) {
      intervals_.insert(first, added);
    } else {
      *first = added;
      intervals_.erase(first + 1, last);
    }
  }
  const std::vector<Interval>& intervals() const { return intervals_; }

 private:
  std::vector<Interval> intervals_;
};

// A tree over time. Each node knows the offsets taken by items that live through all of its instants (`whole`, kept at
// the highest such nodes only), and by items that live at any of them (`any`).
class OccupancyTree {
 public:
  explicit OccupancyTree(std::uint32_t instants)
      : leaves_(std::bit_ceil(std::max(1u, instants))), nodes_(2 * leaves_) {}

  // The smallest gap of at least `bytes` above `base` that is free during all of [begin, end), the lowest of equals.
  Bytes find(const Item& item, Bytes base, std::uint64_t& work) {
    taken_.clear();
    const auto take = [&](const Cover& cover) {
      taken_.insert(taken_.end(), cover.intervals().begin(), cover.intervals().end());
    };
    for_pieces(item, [&](std::size_t node) { take(nodes_[node].any); });
    for_paths(item, [&](std::size_t node) { take(nodes_[node].whole); });
    work += taken_.size() + 32;
    std::sort(taken_.begin(), taken_.end(), [](const auto& a, const auto& b) { return a.begin < b.begin; });
    Bytes top = base, best = -1, best_gap = kEndless;
    for (const Cover::Interval& interval : taken_) {
      const Bytes gap = interval.begin - top;
      if (gap >= item.bytes && gap < best_gap) {
        best = top;
        best_gap = gap;
      }
      top = std::max(top, interval.end);
    }
    return best >= 0 ? best : top;
  }

  void insert(const Item& item, Bytes offset) {
    const Cover::Interval taken{offset, offset + item.bytes};
    for_pieces(item, [&](std::size_t node) {
      nodes_[node].any.insert(taken);
      nodes_[node].whole.insert(taken);
    });
    for_paths(item, [&](std::size_t node) { nodes_[node].any.insert(taken); });
  }

 private:
  struct Node {
    Cover whole, any;
  };

  // The fewest nodes that make up [begin, end).
  template <class Visit>
  void for_pieces(const Item& item, Visit visit) {
    std::size_t low = item.begin + leaves_, high = item.end + leaves_;
    for (; low < high; low /= 2, high /= 2) {
      if (low % 2 == 1) visit(low++);
      if (high % 2 == 1) visit(--high);
    }
  }
  // The nodes above the first and the last instant: every node above a piece is one of them, and each of them holds an
  // instant of the item.
  template <class Visit>
  void for_paths(const Item& item, Visit visit) {
    std::size_t low = item.begin + leaves_, high = item.end - 1 + leaves_;
    for (; low != high; low /= 2, high /= 2) {
      visit(low);
      visit(high);
    }
    for (; low > 0; low /= 2) visit(low);
  }

  std::size_t leaves_;
  std::vector<Node> nodes_;
  std::vector<Cover::Interval> taken_;
};

enum class Order { length, bytes_times_length, bytes };

std::vector<std::uint32_t> ordered(const std::vector<Item>& items, Order order) {
  const auto weight = [order](const Item& item) {
    const double length = item.end - item.begin;
    if (order == Order::length) return length;
    return static_cast<double>(item.bytes) * (order == Order::bytes ? 1 : length);
  };
  std::vector<std::uint32_t> numbers(items.size());
  std::iota(numbers.begin(), numbers.end(), 0u);
  std::stable_sort(numbers.begin(), numbers.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return weight(items[a]) > weight(items[b]); });
  return numbers;
}

// Nothing where the budget did not last.
std::optional<Packing> placed(const Problem& problem, const Packing& base, Order order, std::uint64_t& work) {
  Packing packing = base;
  OccupancyTree tree(problem.instants);
  for (const std::uint32_t number : ordered(problem.items, order)) {
    const Item& item = problem.items[number];
    const Bytes offset = tree.find(item, base.size, work);
    if (work > kBudget) return std::nullopt;
    tree.insert(item, offset);
    packing.offsets[item.index] = offset;
    packing.size = std::max(packing.size, offset + item.bytes);
  }
  return packing;
}

}  // namespace

ArenaPlan plan_arena(const std::vector<Lifetime>& lifetimes, Bytes alignment) {
  Problem problem = ranked(lifetimes, alignment);
  const Bytes lower_bound = most_at_once(problem);
  Packing base;
  base.offsets.assign(lifetimes.size(), 0);
  place_permanent(problem, base);
  Packing best = swept(problem, base, false);
  const auto keep = [&](Packing&& other) {
    if (other.size < best.size) best = std::move(other);
  };
  if (best.size > lower_bound) keep(swept(problem, base, true));
  std::uint64_t work = 0;
  for (const Order order : {Order::length, Order::bytes_times_length, Order::bytes}) {
    if (best.size == lower_bound) break;
    std::optional<Packing> packing = placed(problem, base, order, work);
    if (packing) keep(std::move(*packing));
  }
  return {std::move(best.offsets), best.size, lower_bound};
}

}  // namespace memwall
