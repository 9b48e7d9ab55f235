#include "policies/cycle/moves_bound.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>

namespace memwall {
namespace {

// Slots at which the excess is looked at: the highest of each part of the turn. Looking at fewer slots weakens the
// bound and never breaks it.
constexpr std::size_t kPeaks = 256;
constexpr std::int64_t kRotations = 24;
constexpr double kNever = std::numeric_limits<double>::infinity();

struct Item {
  std::int64_t slot = 0;  // written at, or used next, seen from the peak's turn
  double bytes = 0;
  double price = kNever;  // seconds per byte of making it again
};

// The windows of one peak in one direction, in the order in which they grow.
struct Side {
  double always = 0;        // bytes that need not pass the link
  std::vector<Item> items;  // the nearest to the peak first
};

class Bound {
 public:
  Bound(const StepCycle& cycle, const CycleLinks& links, Bytes budget, const RerunPrices* prices)
      : cycle_(cycle), links_(links), budget_(static_cast<double>(budget)), prices_(prices), turn_(cycle.size()) {
    // What a copy carries, not what the allocator holds: the least that any plan has to move.
    live_.assign(turn_, 0);
    std::vector<double> change(turn_ + 1, 0);
    for (const CycleStorage& s : cycle.storages()) add_needed(s, change);
    std::partial_sum(change.begin(), change.end() - 1, live_.begin());
    work_.assign(1, 0);
    for (const CycleSlot& slot : cycle.slots()) work_.push_back(work_.back() + to_seconds(slot.work));
    find_peaks();
    gather();
  }

  const std::vector<std::uint32_t>& peaks() const { return peaks_; }
  double excess(std::uint32_t peak) const { return live_[peak] - budget_; }
  double work() const { return work_.back(); }

  // All windows of all peaks that make the device wait, and that no shorter one of the same side exceeds.
  std::vector<BindingWindow> windows() const {
    std::vector<BindingWindow> all;
    for (std::size_t i = 0; i < peaks_.size(); ++i)
      for (const bool out : {true, false}) {
        double longest = 0;
        walk(i, out, [&](std::int64_t at, double needed, double seconds, const auto&) {
          const double rate = out ? links_.total_out : links_.total_in;
          const double wait = needed / rate - seconds;
          if (wait <= longest) return;
          longest = wait;
          const std::int64_t peak = peaks_[i];
          all.push_back({out ? at : peak, out ? peak : at, out, peaks_[i], static_cast<Bytes>(needed), wait});
        });
      }
    return all;
  }

  // The largest cost of a window of which bytes wait for the link or are made again, whichever is less.
  double largest_joint() const {
    double largest = 0;
    std::vector<Item> cheapest;
    for (std::size_t i = 0; i < peaks_.size(); ++i)
      for (const bool out : {true, false}) {
        const double rate = out ? links_.total_out : links_.total_in;
        walk(i, out, [&](std::int64_t from, double needed, double seconds, const auto& items) {
          double open = needed - rate * seconds;
          if (open <= 0 || open / rate <= largest) return;
          cheapest.assign(items.first, items.second);
          std::sort(cheapest.begin(), cheapest.end(),
                    [](const Item& a, const Item& b) { return a.price < b.price; });
          double cost = 0;
          for (const Item& item : cheapest) {
            // While it is made again the link goes on.
            const double covers = out && from >= 0 ? 1 : 1 + rate * item.price;
            if (!(item.price / covers < 1 / rate) || open <= 0) break;
            const double taken = std::min(open / covers, item.bytes);
            cost += taken * item.price;
            open -= taken * covers;
          }
          largest = std::max(largest, cost + std::max(0.0, open) / rate);
        });
      }
    return largest;
  }

 private:
  // Slots in which bytes of the storage live, but for those in which a plan may do without them for nothing, though
  // the cycle has no gap there: what nothing touches, and what is there before its first touch. What the cycle does not
  // move, as another stream writes it, other plans may: it counts only where it is touched.
  static void add_needed(const CycleStorage& s, std::vector<double>& change) {
    const auto bytes = static_cast<double>(s.moved);
    const auto lives = [&](std::uint32_t first, std::uint32_t last) {
      change[first] += bytes;
      change[last + 1] -= bytes;
    };
    if (s.fixed && s.first != s.last)
      for (const CycleTouch& touch : s.touches) lives(touch.slot, touch.slot);
    else if (s.from_before ? !(s.across && s.touches.empty()) : s.fixed)
      lives(s.first, s.last);
    else if (!s.touches.empty())
      lives(s.touches.front().slot, s.last);
  }

  void find_peaks() {
    const std::size_t parts = std::min<std::size_t>(kPeaks, turn_);
    for (std::size_t part = 0; part < parts; ++part) {
      const auto first = live_.begin() + static_cast<std::ptrdiff_t>(part * turn_ / parts);
      const auto last = live_.begin() + static_cast<std::ptrdiff_t>((part + 1) * turn_ / parts);
      const auto highest = std::max_element(first, last);
      if (*highest > budget_) peaks_.push_back(static_cast<std::uint32_t>(highest - live_.begin()));
    }
  }

  void gather() {
    out_.resize(peaks_.size());
    in_.resize(peaks_.size());
    for (std::size_t g = 0; g < cycle_.gaps().size(); ++g) {
      const CycleGap& gap = cycle_.gaps()[g];
      for (const std::int64_t turn : {std::int64_t{0}, static_cast<std::int64_t>(turn_)}) {
        auto peak = std::lower_bound(peaks_.begin(), peaks_.end(), std::max<std::int64_t>(0, gap.begin - turn));
        for (; peak != peaks_.end() && *peak + turn < gap.end; ++peak)
          add(static_cast<std::size_t>(peak - peaks_.begin()), g, turn);
      }
    }
    for (Side& side : out_)
      std::sort(side.items.begin(), side.items.end(), [](const Item& a, const Item& b) { return a.slot > b.slot; });
    for (Side& side : in_)
      std::sort(side.items.begin(), side.items.end(), [](const Item& a, const Item& b) { return a.slot < b.slot; });
  }

  void add(std::size_t peak, std::size_t g, std::int64_t turn) {
    const CycleGap& gap = cycle_.gaps()[g];
    const auto bytes = static_cast<double>(cycle_.storages()[gap.storage].moved);
    const double price = prices_ == nullptr ? kNever : (*prices_)[g];
    if (gap.needs_copy)
      out_[peak].items.push_back({gap.written - turn, bytes, price});
    else
      out_[peak].always += bytes;
    if (gap.needs_content && gap.returns)
      in_[peak].items.push_back({gap.end - turn, bytes, price});
    else
      in_[peak].always += bytes;
  }

  // The end of a slot of any turn, by the device's work alone.
  double work_before(std::int64_t slot) const {
    const auto turn = static_cast<std::int64_t>(turn_);
    std::int64_t turns = slot / turn, rest = slot % turn;
    if (rest < 0) --turns, rest += turn;
    return static_cast<double>(turns) * work_.back() + work_[static_cast<std::size_t>(rest)];
  }

  // For each window of a peak: its other end, the bytes that have to pass in it, its seconds, the items among them.
  template <typename Visit>
  void walk(std::size_t i, bool out, Visit visit) const {
    const Side& side = out ? out_[i] : in_[i];
    const std::int64_t peak = peaks_[i];
    double outside = side.always;
    for (const Item& item : side.items) outside += item.bytes;
    for (std::size_t j = 0; j < side.items.size();) {
      const std::int64_t at = side.items[j].slot;
      while (j < side.items.size() && side.items[j].slot == at) outside -= side.items[j++].bytes;
      const double needed = excess(peaks_[i]) - outside;
      if (needed <= 0) continue;
      const double seconds = out ? work_before(peak) - work_before(at + 1) : work_before(at) - work_before(peak + 1);
      visit(at, needed, std::max(0.0, seconds), std::pair(side.items.begin(), side.items.begin() + static_cast<std::ptrdiff_t>(j)));
    }
  }

  const StepCycle& cycle_;
  const CycleLinks& links_;
  const double budget_;
  const RerunPrices* prices_;
  const std::size_t turn_;
  std::vector<double> live_, work_;
  std::vector<std::uint32_t> peaks_;
  std::vector<Side> out_, in_;
};

// Of windows between `cut` and a turn later, disjoint ones whose waits are most together.
std::pair<double, std::vector<BindingWindow>> best_of(const std::vector<BindingWindow>& windows, std::int64_t cut,
                                                      std::int64_t turn) {
  std::vector<BindingWindow> inside;
  for (BindingWindow window : windows) {
    std::int64_t shift = cut - window.from;
    shift = (shift + (shift > 0 ? turn - 1 : 0)) / turn * turn;
    if (window.from + shift >= cut + turn) shift -= turn;
    window.from += shift, window.to += shift;
    if (window.from >= cut && window.to <= cut + turn) inside.push_back(window);
  }
  std::sort(inside.begin(), inside.end(), [](const BindingWindow& a, const BindingWindow& b) {
    return std::tuple(a.to, a.from, a.out) < std::tuple(b.to, b.from, b.out);
  });
  // By node from `cut`: the most that windows wait that end there or before, and the last of them.
  std::vector<double> most(static_cast<std::size_t>(turn) + 1, 0);
  std::vector<std::size_t> last(most.size(), inside.size());
  std::size_t next = 0;
  for (std::size_t node = 1; node < most.size(); ++node) {
    most[node] = most[node - 1], last[node] = last[node - 1];
    for (; next < inside.size() && inside[next].to == cut + static_cast<std::int64_t>(node); ++next) {
      const double with = most[static_cast<std::size_t>(inside[next].from - cut)] + inside[next].wait_seconds;
      if (with > most[node]) most[node] = with, last[node] = next;
    }
  }
  std::vector<BindingWindow> chosen;
  for (std::size_t at = last.back(); at < inside.size();) {
    chosen.push_back(inside[at]);
    at = last[static_cast<std::size_t>(inside[at].from - cut)];
  }
  std::reverse(chosen.begin(), chosen.end());
  return {most.back(), std::move(chosen)};
}

// Cuts spread over the turn, and the ends of the window that waits longest.
std::vector<std::int64_t> cuts(const std::vector<BindingWindow>& windows, std::int64_t turn) {
  std::vector<std::int64_t> all;
  for (std::int64_t r = 0; r < kRotations; ++r) all.push_back(r * turn / kRotations);
  const auto longest = std::max_element(windows.begin(), windows.end(), [](const auto& a, const auto& b) {
    return a.wait_seconds < b.wait_seconds;
  });
  if (longest != windows.end())
    for (const std::int64_t at : {longest->from, longest->to}) all.push_back(((at % turn) + turn) % turn);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

// Bytes that the path's tier holds at most: what is rounded up least fills it.
Bytes most_in(const StepCycle& cycle, const CyclePath& path) {
  if (!path.pinned) return path.room;
  std::vector<std::pair<double, Bytes>> sizes;  // taken per byte, bytes
  for (const CycleStorage& s : cycle.storages())
    if (s.moved > 0) sizes.emplace_back(static_cast<double>(path.held(s.moved)) / static_cast<double>(s.moved), s.moved);
  std::sort(sizes.begin(), sizes.end());
  double room = static_cast<double>(path.room), bytes = 0;
  for (const auto& [rounding, moved] : sizes) {
    const double taken = std::min(room, rounding * static_cast<double>(moved));
    bytes += taken / rounding;
    room -= taken;
  }
  return static_cast<Bytes>(bytes) + (room > 0 ? static_cast<Bytes>(room) : 0);
}

CycleLinks behind_first(const CycleLinks& links) {
  CycleLinks others;
  others.paths.assign(links.paths.begin() + 1, links.paths.end());
  for (const CyclePath& path : others.paths) others.total_out += path.out_rate, others.total_in += path.in_rate;
  others.total_out = std::min(others.total_out, links.total_out);
  others.total_in = std::min(others.total_in, links.total_in);
  return others;
}

// The windows that bind, where they make a turn longer than what is known so far.
void bind(const StepCycle& cycle, const CycleLinks& links, Bytes budget, MovesBound& result) {
  const Bound bound(cycle, links, budget, nullptr);
  const std::vector<BindingWindow> windows = bound.windows();
  double most = 0;
  std::vector<BindingWindow> best;
  for (const std::int64_t cut : cuts(windows, cycle.size())) {
    auto [waits, chosen] = best_of(windows, cut, cycle.size());
    if (waits <= most) continue;
    most = waits;
    best = std::move(chosen);
  }
  if (bound.work() + most <= result.seconds) return;
  result.seconds = bound.work() + most;
  result.windows = std::move(best);
  result.per_byte = result.per_out_rate = result.per_in_rate = 0;
  for (const BindingWindow& window : result.windows) {
    const double rate = window.out ? links.total_out : links.total_in;
    result.per_byte -= 1 / rate;
    (window.out ? result.per_out_rate : result.per_in_rate) -= static_cast<double>(window.deficit) / (rate * rate);
  }
}

}  // namespace

MovesBound moves_bound(const StepCycle& cycle, const CycleLinks& links, Bytes budget) {
  MovesBound result;
  result.ideal_seconds = result.seconds = to_seconds(cycle.turn());
  const auto& live = cycle.live();
  result.worst = static_cast<std::uint32_t>(std::max_element(live.begin(), live.end()) - live.begin());
  result.excess = live[result.worst] - budget;
  const std::vector<Bytes> least = cycle.least();
  result.least_budget = *std::max_element(least.begin(), least.end());
  result.feasible = result.least_budget <= budget;
  if (result.excess <= 0) return result;
  bind(cycle, links, budget, result);
  // What the first path's tier has no room for has to lie behind the others, whose links alone lead there.
  const Bytes room = most_in(cycle, links.paths.front());
  if (result.excess <= room) return result;
  const CycleLinks others = behind_first(links);
  if (others.paths.empty())
    result.feasible = false;
  else
    bind(cycle, others, budget + room, result);
  return result;
}

double joint_bound_seconds(const StepCycle& cycle, const CycleLinks& links, Bytes budget, const RerunPrices& prices) {
  const Bound bound(cycle, links, budget, &prices);
  return std::max(to_seconds(cycle.turn()), bound.work() + bound.largest_joint());
}

}  // namespace memwall
