#include "policies/cycle/moves_bound.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "policies/cycle/cheapest_reruns.h"
#include "policies/cycle/disjoint_windows.h"
#include "policies/cycle/link_flows.h"
#include "policies/cycle/needed_bytes.h"
#include "policies/cycle/seen_items.h"

namespace memwall {
namespace {

constexpr std::size_t kWindowsOfPeak = 160;  // about so many
constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kSurelyNot = 1 - 1e-9;

class Bound {
 public:
  Bound(const StepCycle& cycle, const CycleLinks& links, Bytes budget, std::size_t peaks, const RerunPrices* prices)
      : cycle_(cycle), links_(links), budget_(static_cast<double>(budget)), turn_(cycle.size()) {
    for (const Bytes needed : needed_bytes(cycle)) live_.push_back(static_cast<double>(needed));
    work_.assign(1, 0);
    for (const CycleSlot& slot : cycle.slots()) work_.push_back(work_.back() + to_seconds(slot.work));
    find_peaks(peaks);
    if (!peaks_.empty()) gather(prices);
  }

  double work() const { return work_.back(); }

  // Windows of all peaks that make the device wait, but those within which another one waits as long. Ascending by
  // `to`, whose start is in the first turn.
  std::vector<BindingWindow> windows() const {
    std::vector<BindingWindow> all;
    all.reserve(kWindowsOfPeak * peaks_.size());
    add_windows(true, all);
    add_windows(false, all);
    return undominated_windows(all, static_cast<std::int64_t>(turn_));
  }

  // The largest cost of a window of which bytes wait for the link or are made again, whichever is less: seconds, and
  // how these change with the budget and the rates.
  JointBound largest_joint() const {
    JointBound largest;
    std::vector<std::size_t> highest_first(peaks_.size());
    std::iota(highest_first.begin(), highest_first.end(), 0);
    std::stable_sort(highest_first.begin(), highest_first.end(),
                     [&](auto a, auto b) { return live_[peaks_[a]] > live_[peaks_[b]]; });
    for (const bool out : {true, false}) {
      CheapestReruns reruns(prices_, rate(out));
      for (const std::size_t peak : highest_first) {
        reruns.clear();
        const auto include = [&](const BoundItem& item) { include_rerun(item, peak, reruns); };
        const auto visit = [&](std::int64_t at, double needed, double seconds) {
          const double open = needed - rate(out) * seconds;
          if (open / rate(out) <= largest.seconds) return;
          const CheapestReruns::Cost cost = reruns.cost(open, !out || at < 0);
          const double per_rate = cost.per_rate - cost.per_byte * seconds;
          take({cost.seconds, -cost.per_byte, out ? per_rate : 0, out ? 0 : per_rate, per_rate}, largest);
        };
        walk(peak, out, largest.seconds, include, visit);
      }
    }
    CheapestReruns reruns(prices_, std::max(rate(true), rate(false)));
    for (const std::size_t peak : highest_first) add_crossing(peak, reruns, largest);
    return largest;
  }

 private:
  void find_peaks(std::size_t most) {
    const std::size_t parts = std::min(most, turn_);
    for (std::size_t part = 0; part < parts; ++part) {
      const auto first = live_.begin() + static_cast<std::ptrdiff_t>(part * turn_ / parts);
      const auto last = live_.begin() + static_cast<std::ptrdiff_t>((part + 1) * turn_ / parts);
      const auto highest = std::max_element(first, last);
      if (*highest > budget_) peaks_.push_back(static_cast<std::uint32_t>(highest - live_.begin()));
    }
  }

  // The shorter windows of the same end come first: most of the others do not wait as long as these within them.
  void add_windows(bool out, std::vector<BindingWindow>& all) const {
    const auto turn = static_cast<std::int64_t>(turn_);
    std::vector<double> known(3 * turn_ + 1, 0);  // by the other end, from a turn before: the longest wait so far
    for (std::size_t p = 0; p < peaks_.size(); ++p) {
      const std::size_t index = out ? p : peaks_.size() - 1 - p;
      const std::int64_t peak = peaks_[index];
      double longest = 0;
      const auto visit = [&](std::int64_t at, double needed, double seconds) {
        // Most wait no longer, by much more than is rounded: these need no division.
        if (needed <= kSurelyNot * rate(out) * (longest + seconds)) return;
        const double wait = needed / rate(out) - seconds;
        if (wait <= longest) return;
        longest = wait;
        double& within = known[static_cast<std::size_t>(at + turn)];
        if (within > wait) return;
        within = wait;
        std::int64_t from = out ? at : peak, to = out ? peak : at;
        if (to > turn) from -= turn, to -= turn;
        if (to - from <= turn) all.push_back({from, to, out, peaks_[index], static_cast<Bytes>(needed), wait});
      };
      walk(
          index, out, longest, [](const BoundItem&) {}, visit);
    }
  }

  void include_rerun(const BoundItem& item, std::size_t index, CheapestReruns& reruns) const {
    const auto peak = static_cast<std::int32_t>(peaks_[index]);
    if (item.rank_alone == kNoRank || peak >= item.until) return;
    if (peak < item.lost_from) return reruns.add(item.rank_alone, item.bytes);
    if (item.bytes_before > 0) reruns.add(item.rank_alone, -item.bytes_before);
    reruns.add(item.rank, item.bytes + item.bytes_before);
  }

  static void take(const JointBound& cost, JointBound& largest) {
    if (cost.seconds > largest.seconds) largest = cost;
  }

  // Windows that cross a peak: what was written in one or is used in it passes one of the links, of which each has only
  // the time of its side.
  void add_crossing(std::size_t index, CheapestReruns& reruns, JointBound& largest) const {
    const std::uint32_t peak = peaks_[index];
    const std::int32_t from = best_begin(index);
    double outside = in_gaps_[peak];
    reruns.clear();
    for (std::size_t i = out_.next(0, index); i < out_.size() && out_[i].slot >= from; i = out_.next(i + 1, index)) {
      outside -= out_[i].bytes;
      include_rerun(out_[i], index, reruns);
    }
    const bool out_is_faster = rate(true) >= rate(false), in_is_faster = rate(false) >= rate(true);
    const double faster = std::max(rate(true), rate(false)), work = work_before(peak + 1);
    const double before = std::max(0.0, work_before(peak) - work_before(from + 1));
    const double open = excess(peak) - rate(true) * before;
    for (std::size_t i = in_.next(0, index); i < in_.size();) {
      const std::int32_t to = in_[i].slot;
      const double behind = std::max(0.0, in_[i].work - work), left = open - rate(false) * behind;
      if (left / faster <= largest.seconds || to - from > static_cast<std::int64_t>(turn_)) return;
      for (; i < in_.size() && in_[i].slot == to; i = in_.next(i + 1, index)) {
        if (in_[i].written >= from) continue;
        outside -= in_[i].bytes;
        include_rerun(in_[i], index, reruns);
      }
      if (left <= outside) continue;
      const CheapestReruns::Cost cost = reruns.cost(left - outside, true);
      take({cost.seconds, -cost.per_byte, (out_is_faster ? cost.per_rate : 0) - cost.per_byte * before,
            (in_is_faster ? cost.per_rate : 0) - cost.per_byte * behind,
            cost.per_rate - cost.per_byte * (before + behind)},
           largest);
    }
  }

  // The slot after whose end most bytes are written that lack time to leave before the peak.
  std::int32_t best_begin(std::size_t index) const {
    const std::uint32_t peak = peaks_[index];
    auto best = static_cast<std::int32_t>(peak);
    double inside = 0, most = 0;
    for (std::size_t i = out_.next(0, index); i < out_.size();) {
      const std::int32_t at = out_[i].slot;
      const double passing = rate(true) * std::max(0.0, work_before(peak) - out_[i].work);
      for (; i < out_.size() && out_[i].slot == at; i = out_.next(i + 1, index)) inside += out_[i].bytes;
      if (inside - passing > most) most = inside - passing, best = at;
    }
    return best;
  }

  double excess(std::uint32_t peak) const { return live_[peak] - budget_; }
  double rate(bool out) const { return out ? links_.total_out : links_.total_in; }

  void gather(const RerunPrices* prices) {
    if (prices != nullptr)
      for (const RerunPrice& price : *prices)
        for (const double one : {price.seconds_per_byte, price.with_inputs})
          if (one < kNever) prices_.push_back(one);
    std::sort(prices_.begin(), prices_.end());
    prices_.erase(std::unique(prices_.begin(), prices_.end()), prices_.end());
    std::vector<double> change(turn_ + 1, 0);
    std::vector<BoundItem> outs, ins;
    const auto turn = static_cast<std::int32_t>(turn_);
    for (std::size_t g = 0; g < cycle_.gaps().size(); ++g) {
      const CycleGap& gap = cycle_.gaps()[g];
      const RerunPrice price = prices == nullptr ? RerunPrice(kNever) : (*prices)[g];
      BoundItem item;
      item.bytes = static_cast<double>(cycle_.storages()[gap.storage].moved);
      item.rank_alone = rank_of(price.seconds_per_byte);
      for (const std::int32_t before : {0, turn}) {
        item.begin = gap.begin - before, item.end = gap.end - before;
        item.until = price.until == RerunPrice::kAlways ? price.until : price.until - before;
        const std::int32_t first = std::max(0, item.begin), last = std::min(turn, item.end);
        if (first >= last) continue;
        change[static_cast<std::size_t>(first)] += item.bytes;
        change[static_cast<std::size_t>(last)] -= item.bytes;
        if (gap.needs_copy) add_out(item, gap.written - before, price, before, outs);
        item.slot = gap.end - before;
        item.work = work_before(item.slot);
        item.written = gap.needs_copy ? gap.written - before : kLongAgo;
        item.rank = rank_of(price.with_inputs), item.lost_from = price.lost_from - before;
        if (gap.needs_content && gap.returns) ins.push_back(item);
      }
    }
    in_gaps_.resize(turn_);
    std::partial_sum(change.begin(), change.end() - 1, in_gaps_.begin());
    // The first behind and ahead of each peak come first.
    out_.gather(outs, in_order_of(outs.size(), [&](auto i) { return -outs[i].slot; }), peaks_);
    in_.gather(ins, in_order_of(ins.size(), [&](auto i) { return ins[i].slot; }), peaks_);
  }

  std::uint32_t rank_of(double price) const {
    if (price >= kNever) return kNoRank;
    return static_cast<std::uint32_t>(std::lower_bound(prices_.begin(), prices_.end(), price) - prices_.begin());
  }

  // At the price of its op alone; of what that reads, too, where the window is long enough.
  void add_out(BoundItem item, std::int32_t written, const RerunPrice& price, std::int32_t before,
               std::vector<BoundItem>& outs) const {
    item.slot = written;
    item.work = work_before(item.slot + 1);
    item.rank = item.rank_alone, item.lost_from = 0;
    outs.push_back(item);
    if (price.with_inputs <= price.seconds_per_byte) return;
    item.slot = std::min(written, price.inputs_from - before);
    item.work = work_before(item.slot + 1);
    item.bytes_before = item.bytes, item.bytes = 0;
    item.rank = rank_of(price.with_inputs), item.lost_from = price.lost_from - before;
    outs.push_back(item);
  }

  // The end of a slot of any turn, by the device's work alone.
  double work_before(std::int64_t slot) const {
    const auto turn = static_cast<std::int64_t>(turn_);
    std::int64_t turns = slot / turn, rest = slot % turn;
    if (rest < 0) --turns, rest += turn;
    return static_cast<double>(turns) * work_.back() + work_[static_cast<std::size_t>(rest)];
  }

  // For each window of a peak (its index), the shortest first: its other end, the bytes that have to pass in it, its
  // seconds. Before that, each item that the window has and the one before had not. Ends where no longer one can make
  // the device wait longer than `least`.
  template <typename Include, typename Visit>
  void walk(std::size_t index, bool out, const double& least, Include include, Visit visit) const {
    const std::uint32_t peak = peaks_[index];
    const SeenItems& items = out ? out_ : in_;
    const double work = work_before(out ? peak : peak + 1), longest = excess(peak) / rate(out);
    double outside = in_gaps_[peak], seconds = 0;
    constexpr std::int32_t kNone = std::numeric_limits<std::int32_t>::max();
    std::int32_t at = kNone;
    items.each(index, [&](std::size_t item) {
      const PassingItem& passing = items.passing(item);
      if (passing.slot != at) {
        if (at != kNone && excess(peak) > outside) visit(at, excess(peak) - outside, seconds);
        at = passing.slot;
        seconds = std::max(0.0, out ? work - passing.work : passing.work - work);
        if (longest - seconds <= least) {
          at = kNone;
          return false;
        }
      }
      outside -= passing.bytes;
      include(items[item]);
      return true;
    });
    if (at != kNone && excess(peak) > outside) visit(at, excess(peak) - outside, seconds);
  }

  const StepCycle& cycle_;
  const CycleLinks& links_;
  const double budget_;
  const std::size_t turn_;
  std::vector<double> live_, work_;
  std::vector<std::uint32_t> peaks_;
  SeenItems out_, in_;
  std::vector<double> in_gaps_;  // by slot: bytes of all gaps that it is in
  std::vector<double> prices_;   // of re-runs, ascending
};

// The windows that bind, where they make a turn longer than what is known so far.
void bind(const StepCycle& cycle, const CycleLinks& links, Bytes budget, std::size_t peaks, MovesBound& result) {
  const Bound bound(cycle, links, budget, peaks, nullptr);
  const std::vector<BindingWindow> windows = bound.windows();
  DisjointWindows disjoint(windows, cycle.size());
  double most = 0;
  std::int64_t best_cut = 0;
  for (const std::int64_t cut : cuts_of(windows, cycle.size()))
    if (const double waits = disjoint.most(cut); waits > most) most = waits, best_cut = cut;
  if (bound.work() + most <= result.seconds) return;
  result.seconds = bound.work() + most;
  result.windows = disjoint.chosen(best_cut);
  result.per_byte = result.per_out_rate = result.per_in_rate = 0;
  for (const BindingWindow& window : result.windows) {
    const double rate = window.out ? links.total_out : links.total_in;
    result.per_byte -= 1 / rate;
    (window.out ? result.per_out_rate : result.per_in_rate) -= static_cast<double>(window.deficit) / (rate * rate);
  }
}

}  // namespace

MovesBound bound_without_links(const StepCycle& cycle, Bytes budget) {
  MovesBound result;
  result.ideal_seconds = result.seconds = to_seconds(cycle.turn());
  const auto& live = cycle.live();
  result.worst = static_cast<std::uint32_t>(std::max_element(live.begin(), live.end()) - live.begin());
  result.excess = live[result.worst] - budget;
  const std::vector<Bytes> least = cycle.least();
  result.least_budget = *std::max_element(least.begin(), least.end());
  result.feasible = result.least_budget <= budget;
  return result;
}

MovesBound moves_bound(const StepCycle& cycle, const CycleLinks& links, Bytes budget, std::size_t peaks) {
  MovesBound result = bound_without_links(cycle, budget);
  if (result.excess <= 0) return result;
  for (const LinkFlow& flow : flows_of(cycle, links)) bind(cycle, flow.links, budget + flow.ahead, peaks, result);
  // What the first path's tier has no room for has to lie behind the others, whose links alone lead there.
  const Bytes room = most_in(cycle, links.paths.front());
  if (result.excess <= room) return result;
  const CycleLinks others = behind_first(links);
  if (others.paths.empty())
    result.feasible = false;
  else
    for (const LinkFlow& flow : flows_of(cycle, others))
      bind(cycle, flow.links, budget + room + flow.ahead, peaks, result);
  return result;
}

JointBound joint_bound(const StepCycle& cycle, const CycleLinks& links, Bytes budget, const RerunPrices& prices) {
  JointBound joint;
  for (const LinkFlow& flow : flows_of(cycle, links)) {
    const Bound bound(cycle, flow.links, budget + flow.ahead, kPeaksOfBound, &prices);
    JointBound of_flow = bound.largest_joint();
    of_flow.seconds += bound.work();
    if (of_flow.seconds >= joint.seconds) joint = of_flow;
  }
  // Work alone may be less than a turn, in which the device waits for the host.
  if (joint.seconds <= to_seconds(cycle.turn())) joint = {.seconds = to_seconds(cycle.turn())};
  return joint;
}

double joint_bound_seconds(const StepCycle& cycle, const CycleLinks& links, Bytes budget, const RerunPrices& prices) {
  return joint_bound(cycle, links, budget, prices).seconds;
}

double reruns_bound_seconds(const StepCycle& cycle, Bytes budget, const RerunPrices& prices) {
  CycleLinks none;
  none.total_out = none.total_in = 1;
  return joint_bound_seconds(cycle, none, budget, prices);
}

}  // namespace memwall
