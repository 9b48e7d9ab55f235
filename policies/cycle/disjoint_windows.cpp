#include "policies/cycle/disjoint_windows.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace memwall {
namespace {

constexpr std::int64_t kRotations = 24;

// A place of the turn that no window crosses; -1: there is none.
std::int64_t free_cut(const std::vector<BindingWindow>& windows, std::int64_t turn) {
  std::vector<std::int32_t> change(static_cast<std::size_t>(turn) + 1, 0);  // of the windows that cross a place
  const auto cross = [&](std::int64_t first, std::int64_t end) {
    if (first >= end) return;
    ++change[static_cast<std::size_t>(first)];
    --change[static_cast<std::size_t>(end)];
  };
  for (const BindingWindow& window : windows) {
    if (window.from >= 0) {
      cross(window.from + 1, std::min(window.to, turn));
    } else {
      cross(window.from + turn + 1, turn);
      cross(0, window.to);
    }
  }
  std::int32_t crossing = 0;
  for (std::int64_t at = 0; at < turn; ++at)
    if ((crossing += change[static_cast<std::size_t>(at)]) == 0) return at;
  return -1;
}

}  // namespace

std::vector<std::int64_t> cuts_of(const std::vector<BindingWindow>& windows, std::int64_t turn) {
  if (const std::int64_t cut = free_cut(windows, turn); cut >= 0) return {cut};
  std::vector<std::int64_t> all;
  for (std::int64_t r = 0; r < kRotations; ++r) all.push_back(r * turn / kRotations);
  const auto longest = std::max_element(windows.begin(), windows.end(),
                                        [](const auto& a, const auto& b) { return a.wait_seconds < b.wait_seconds; });
  if (longest != windows.end())
    for (const std::int64_t at : {longest->from, longest->to}) all.push_back(((at % turn) + turn) % turn);
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

std::vector<BindingWindow> undominated_windows(const std::vector<BindingWindow>& windows, std::int64_t turn) {
  std::vector<std::size_t> first(static_cast<std::size_t>(turn) + 2, 0);  // by `to`, of `ordered`
  for (const BindingWindow& window : windows) ++first[static_cast<std::size_t>(window.to) + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<std::size_t> next(first.begin(), first.end() - 1);
  std::vector<const BindingWindow*> ordered(windows.size());
  for (const BindingWindow& window : windows) ordered[next[static_cast<std::size_t>(window.to)]++] = &window;
  // By how long before the last slot it begins: the longest wait of those that begin no earlier, as a Fenwick tree.
  std::vector<double> longest(2 * static_cast<std::size_t>(turn) + 2, 0);
  std::vector<BindingWindow> kept;
  for (std::size_t to = 0; to + 1 < first.size(); ++to) {
    const auto begin = ordered.begin() + static_cast<std::ptrdiff_t>(first[to]);
    const auto end = ordered.begin() + static_cast<std::ptrdiff_t>(first[to + 1]);
    std::sort(begin, end, [](const BindingWindow* a, const BindingWindow* b) {
      return std::tuple(-a->from, -a->wait_seconds, a->out, a->peak) <
             std::tuple(-b->from, -b->wait_seconds, b->out, b->peak);
    });
    for (auto window = begin; window != end; ++window) {
      const auto place = static_cast<std::size_t>(turn - (*window)->from) + 1;
      double most = 0;
      for (std::size_t i = place; i > 0; i -= i & (~i + 1)) most = std::max(most, longest[i]);
      if (most >= (*window)->wait_seconds) continue;
      for (std::size_t i = place; i < longest.size(); i += i & (~i + 1))
        longest[i] = std::max(longest[i], (*window)->wait_seconds);
      kept.push_back(**window);
    }
  }
  return kept;
}

DisjointWindows::DisjointWindows(const std::vector<BindingWindow>& windows, std::int64_t turn)
    : windows_(windows), turn_(turn), most_(static_cast<std::size_t>(turn) + 1), last_(most_.size()) {
  for (const BindingWindow& window : windows)
    ends_.push_back({static_cast<std::int32_t>(window.to), static_cast<std::int32_t>(window.to - window.from),
                     window.wait_seconds});
}

template <typename Visit>
void DisjointWindows::each(std::int64_t cut, Visit visit) const {
  const auto first = static_cast<std::size_t>(
      std::partition_point(ends_.begin(), ends_.end(), [&](const End& end) { return end.to <= cut; }) - ends_.begin());
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    const std::size_t window = first + i < ends_.size() ? first + i : first + i - ends_.size();
    const End& end = ends_[window];
    const std::int64_t to = node_of(end.to, cut), from = to - end.length;
    if (from >= 0) visit(window, static_cast<std::size_t>(from), static_cast<std::size_t>(to), end.wait);
  }
}

double DisjointWindows::most(std::int64_t cut) {
  std::fill(most_.begin(), most_.end(), 0.0);
  std::size_t node = 0;
  each(cut, [&](std::size_t, std::size_t from, std::size_t to, double wait) {
    for (; node < to; ++node) most_[node + 1] = most_[node];
    most_[to] = std::max(most_[to], most_[from] + wait);
  });
  return most_[node];
}

std::vector<BindingWindow> DisjointWindows::chosen(std::int64_t cut) {
  std::fill(most_.begin(), most_.end(), 0.0);
  std::fill(last_.begin(), last_.end(), windows_.size());  // by node from `cut`: the last window; none
  std::size_t node = 0;
  each(cut, [&](std::size_t window, std::size_t from, std::size_t to, double wait) {
    for (; node < to; ++node) most_[node + 1] = most_[node], last_[node + 1] = last_[node];
    if (most_[from] + wait > most_[to]) most_[to] = most_[from] + wait, last_[to] = window;
  });
  std::vector<BindingWindow> all;
  for (std::size_t at = last_[node]; at < windows_.size();) {
    all.push_back(windows_[at]);
    const std::int64_t to = node_of(ends_[at].to, cut), from = to - ends_[at].length;
    all.back().from = cut + from, all.back().to = cut + to;
    at = last_[static_cast<std::size_t>(from)];
  }
  std::reverse(all.begin(), all.end());
  return all;
}

}  // namespace memwall
