#include "gui/model/instant_order.h"

#include <algorithm>
#include <set>

namespace memwall::gui {
namespace {

constexpr std::size_t kWindow = 1 << 16;  // changes whose memory is read at a time

// Takes begins and ends of one instant as its points ask for them.
class Ordering {
 public:
  Ordering(const ResidencyColumns& columns, const InstantChanges& changes, const std::vector<bool>& at_peak)
      : columns_(columns), changes_(changes), at_peak_(at_peak) {
    out_.reserve(changes.begins.size() + changes.ends.size());
    // Ends of residencies that begin in this instant must wait for that.
    for (const std::uint32_t row : changes.ends)
      if (!begins_here(row)) make_available(row);
  }

  void rise(Bytes by) {
    for (; by > 0 && next_ < changes_.begins.size(); ++next_) {
      by -= columns_.bytes(changes_.begins[next_]);
      begin(changes_.begins[next_]);
    }
  }

  void fall(Bytes by) {
    for (Candidates& candidates : available_)
      while (by > 0) {
        // The largest that is not too large: where one end made the fall, that one.
        auto found = candidates.upper_bound({by, 0xffffffff});
        if (found == candidates.begin()) break;
        --found;
        by -= found->first;
        out_.push_back(TierChange::end_of(found->second));
        candidates.erase(found);
      }
  }

  std::vector<TierChange> finish() {
    for (; next_ < changes_.begins.size(); ++next_) begin(changes_.begins[next_]);
    for (const Candidates& candidates : available_)
      for (const auto& [bytes, row] : candidates) out_.push_back(TierChange::end_of(row));
    return std::move(out_);
  }

 private:
  using Candidates = std::set<std::pair<Bytes, std::uint32_t>>;

  bool begins_here(std::uint32_t row) const {
    return std::binary_search(changes_.begins.begin(), changes_.begins.end(), row);
  }
  void make_available(std::uint32_t row) { available_[at_peak_[row] ? 1 : 0].insert({columns_.bytes(row), row}); }
  void begin(std::uint32_t row) {
    out_.push_back(TierChange::begin_of(row));
    if (std::binary_search(changes_.ends.begin(), changes_.ends.end(), row)) make_available(row);
  }

  const ResidencyColumns& columns_;
  const InstantChanges& changes_;
  const std::vector<bool>& at_peak_;
  std::vector<TierChange> out_;
  std::size_t next_ = 0;
  Candidates available_[2];  // those that do not stand at the peak, and those that do
};

// A run of changes of one instant, with begins and ends in it.
struct MixedInstant {
  Time time{};
  std::size_t first = 0, middle = 0, last = 0;  // begins [first, middle), ends [middle, last)
};

Time time_of(const ResidencyColumns& columns, const TierChange& change) {
  const Residency& residency = columns.residencies[change.row()];
  return change.ends() ? residency.end : residency.begin;
}

// The first instant with begins and ends at or after change `from`; first == changes.size() where there is none.
MixedInstant next_mixed(const ResidencyColumns& columns, const std::vector<TierChange>& changes, std::size_t from) {
  while (from < changes.size()) {
    MixedInstant instant{time_of(columns, changes[from]), from, from, from};
    for (; instant.last < changes.size() && time_of(columns, changes[instant.last]) == instant.time; ++instant.last)
      if (!changes[instant.last].ends()) instant.middle = instant.last + 1;
    if (instant.first < instant.middle && instant.middle < instant.last) return instant;
    from = instant.last;
  }
  return {kNever, from, from, from};
}

void order_one(const ResidencyColumns& columns, const MixedInstant& instant, std::span<const Bytes> requested,
               const std::vector<bool>& at_peak, std::vector<TierChange>& changes) {
  std::vector<std::uint32_t> begins, ends;
  for (std::size_t i = instant.first; i < instant.middle; ++i) begins.push_back(changes[i].row());
  for (std::size_t i = instant.middle; i < instant.last; ++i) ends.push_back(changes[i].row());
  std::sort(ends.begin(), ends.end());
  const std::vector<TierChange> ordered = order_within(columns, {begins, ends}, requested, at_peak);
  std::copy(ordered.begin(), ordered.end(), changes.begin() + static_cast<std::ptrdiff_t>(instant.first));
}

// Orders the mixed instants from `instant` on, as far as a window of changes goes; returns the next one.
MixedInstant order_window(const ResidencyColumns& columns, const RunSource& source, std::uint32_t tier,
                          const std::vector<bool>& at_peak, MixedInstant instant, std::vector<TierChange>& changes) {
  std::vector<MixedInstant> window;
  const std::size_t limit = instant.first + kWindow;
  for (; instant.first < changes.size() && (window.empty() || instant.last <= limit);
       instant = next_mixed(columns, changes, instant.last))
    window.push_back(instant);
  // As many points as changes, and those at both ends; from just before, for what was there then.
  const std::size_t most = window.back().last - window.front().first + 4;
  const Time begin = window.front().time - picoseconds(1);
  const std::vector<MemoryHigh> points = source.memory(tier, begin, window.back().time, most);
  std::size_t at = 0;
  std::vector<Bytes> requested;
  for (const MixedInstant& mixed : window) {
    while (at < points.size() && points[at].time < mixed.time) ++at;
    // Of the first instant of a run the tier's own first point is what was there before.
    requested.clear();
    if (at > 0) requested.push_back(points[at - 1].requested);
    for (; at < points.size() && points[at].time == mixed.time; ++at) requested.push_back(points[at].requested);
    order_one(columns, mixed, requested, at_peak, changes);
  }
  return instant;
}

}  // namespace

std::vector<TierChange> order_within(const ResidencyColumns& columns, const InstantChanges& changes,
                                     std::span<const Bytes> requested, const std::vector<bool>& at_peak) {
  Ordering ordering(columns, changes, at_peak);
  for (std::size_t i = 1; i < requested.size(); ++i)
    if (requested[i] >= requested[i - 1])
      ordering.rise(requested[i] - requested[i - 1]);
    else
      ordering.fall(requested[i - 1] - requested[i]);
  return ordering.finish();
}

void order_instants(const ResidencyColumns& columns, const RunSource& source, std::uint32_t tier,
                    std::vector<TierChange>& changes, const LoadProgress& progress) {
  std::vector<bool> at_peak(columns.residencies.size(), false);
  for (const std::uint32_t row : source.at_peak(tier))
    if (row < at_peak.size()) at_peak[row] = true;
  MixedInstant instant = next_mixed(columns, changes, 0);
  while (instant.first < changes.size()) {
    const double done = static_cast<double>(instant.first) / static_cast<double>(changes.size());
    if (progress && !progress(done)) throw LoadCancelled{};
    instant = order_window(columns, source, tier, at_peak, instant, changes);
  }
}

}  // namespace memwall::gui
