#include "models/workload/import/ranks/collective_match.h"

#include <algorithm>
#include <unordered_map>

#include "sim/quantile.h"

namespace memwall {
namespace {

constexpr Duration kIntervalsAgree = microseconds(20);
constexpr std::int64_t kDriftParts = 10'000;  // 100 ppm of an interval
constexpr std::size_t kProbes = 64, kShiftsTried = 48;
constexpr std::uint32_t kFillTries = 256;
constexpr std::int64_t kMostSendShift = 64;

bool agree_or_unknown(std::int64_t a, std::int64_t b) { return a < 0 || b < 0 || a == b; }

Duration distance(Time a, Time b) { return a < b ? b - a : a - b; }

using Items = std::span<const MatchItem>;

bool is_numbered(Items items) {
  for (std::size_t i = 0; i < items.size(); ++i)
    if (items[i].sequence < 0 || (i > 0 && items[i].sequence <= items[i - 1].sequence)) return false;
  return !items.empty();
}

// All pairs (i, i + shift) that can be the same collective.
std::vector<ItemPair> pairs_at(Items a, Items b, std::int64_t shift) {
  std::vector<ItemPair> pairs;
  const std::int64_t from = std::max<std::int64_t>(0, -shift);
  const std::int64_t to =
      std::min<std::int64_t>(static_cast<std::int64_t>(a.size()), static_cast<std::int64_t>(b.size()) - shift);
  for (std::int64_t i = from; i < to; ++i)
    if (compatible(a[static_cast<std::size_t>(i)], b[static_cast<std::size_t>(i + shift)]))
      pairs.push_back({static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(i + shift)});
  return pairs;
}

// Shifts that put many probes of the shorter side on something compatible, and those that put them on what ended
// nearest to the expected time; a bounded number of each.
std::vector<std::int64_t> likely_shifts(Items a, Items b, bool has_expected, Duration expected) {
  std::unordered_map<std::int64_t, std::uint64_t> votes, near;
  const std::size_t probes = std::min(kProbes, a.size());
  for (std::size_t p = 0; p < probes; ++p) {
    const std::size_t i = p * a.size() / probes;
    std::size_t nearest = b.size();
    for (std::size_t j = 0; j < b.size(); ++j) {
      if (!compatible(a[i], b[j])) continue;
      ++votes[static_cast<std::int64_t>(j) - static_cast<std::int64_t>(i)];
      if (nearest == b.size() ||
          distance(b[j].end + expected, a[i].end) < distance(b[nearest].end + expected, a[i].end))
        nearest = j;
    }
    if (has_expected && nearest < b.size()) ++near[static_cast<std::int64_t>(nearest) - static_cast<std::int64_t>(i)];
  }
  std::vector<std::int64_t> shifts;
  for (const auto* counted : {&votes, &near}) {
    std::vector<std::pair<std::int64_t, std::uint64_t>> sorted(counted->begin(), counted->end());
    std::sort(sorted.begin(), sorted.end(), [](const auto& x, const auto& y) {
      return x.second != y.second ? x.second > y.second : x.first < y.first;
    });
    if (sorted.size() > kShiftsTried) sorted.resize(kShiftsTried);
    for (const auto& [shift, count] : sorted) shifts.push_back(shift);
  }
  std::sort(shifts.begin(), shifts.end());
  shifts.erase(std::unique(shifts.begin(), shifts.end()), shifts.end());
  return shifts;
}

Duration median_difference(Items a, Items b, const std::vector<ItemPair>& pairs) {
  std::vector<Duration> differences;
  for (const ItemPair& pair : pairs) differences.push_back(a[pair.a].end - b[pair.b].end);
  return upper_median(std::move(differences));
}

bool interval_agrees(Items a, Items b, ItemPair from, ItemPair to) {
  const Duration there = a[to.a].end - a[from.a].end, here = b[to.b].end - b[from.b].end;
  return distance(there, here) <= kIntervalsAgree + distance(there, Duration{}) / kDriftParts;
}

// In order between two matched pairs: what can be the same and ran at the same time.
void fill(Items a, Items b, ItemPair from, ItemPair to, std::vector<ItemPair>& pairs) {
  std::uint32_t j = from.b;
  for (std::uint32_t i = from.a; i < to.a && j < to.b; ++i)
    for (std::uint32_t k = j; k < to.b && k - j < kFillTries; ++k) {
      if (b[k].start > a[i].end + kEndsAgree) break;
      if (b[k].end + kEndsAgree < a[i].start || !compatible(a[i], b[k])) continue;
      pairs.push_back({i, k});
      j = k + 1;
      break;
    }
}

}  // namespace

bool compatible(const MatchItem& a, const MatchItem& b) {
  if (a.kind != b.kind) return false;
  if (a.type != b.type && a.type != DataType::unknown && b.type != DataType::unknown) return false;
  if (!agree_or_unknown(a.source, b.source) || !agree_or_unknown(a.destination, b.destination)) return false;
  return a.kind == CollectiveKind::all_to_all || agree_or_unknown(a.elements, b.elements);
}

std::uint64_t agreeing_intervals(Items a, Items b, std::span<const ItemPair> pairs) {
  std::uint64_t agreeing = pairs.empty() ? 0 : 1;
  for (std::size_t i = 1; i < pairs.size(); ++i) agreeing += interval_agrees(a, b, pairs[i - 1], pairs[i]);
  return agreeing;
}

std::vector<ItemPair> agreeing_pairs(Items a, Items b, std::span<const ItemPair> pairs) {
  std::vector<ItemPair> agreeing;
  bool before = false;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const bool behind = i + 1 < pairs.size() && interval_agrees(a, b, pairs[i], pairs[i + 1]);
    if (before || behind) agreeing.push_back(pairs[i]);
    before = behind;
  }
  return agreeing.empty() ? std::vector<ItemPair>(pairs.begin(), pairs.end()) : agreeing;
}

std::vector<ItemPair> match_by_number(Items a, Items b) {
  std::vector<ItemPair> pairs;
  if (!is_numbered(a) || !is_numbered(b)) return pairs;
  for (std::uint32_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (a[i].sequence == b[j].sequence && compatible(a[i], b[j])) pairs.push_back({i, j});
    const std::int64_t at = a[i].sequence;
    if (at <= b[j].sequence) ++i;
    if (b[j].sequence <= at) ++j;
  }
  return pairs;
}

std::vector<ItemPair> match_by_order(Items a, Items b, bool has_expected, Duration expected) {
  std::vector<ItemPair> best;
  std::uint64_t most = 0;
  Duration nearest{};
  const bool swapped = a.size() > b.size();  // probes are of the shorter side
  const Items probed = swapped ? b : a, other = swapped ? a : b;
  for (const std::int64_t found :
       likely_shifts(probed, other, has_expected, has_expected ? (swapped ? -expected : expected) : Duration{})) {
    const std::int64_t shift = swapped ? -found : found;
    std::vector<ItemPair> pairs = pairs_at(a, b, shift);
    if (pairs.empty()) continue;
    const std::uint64_t agreeing = agreeing_intervals(a, b, pairs);
    const Duration away =
        has_expected ? distance(median_difference(a, b, pairs), expected) : Duration(shift < 0 ? -shift : shift);
    if (agreeing < most ||
        (agreeing == most && (pairs.size() < best.size() || (pairs.size() == best.size() && away >= nearest))))
      continue;
    most = agreeing;
    nearest = away;
    best = std::move(pairs);
  }
  return best;
}

std::vector<ItemPair> match_by_time(Items a, Items b) {
  std::vector<ItemPair> anchors;
  for (std::uint32_t i = 0, j = 0; i < a.size() && j < b.size();) {
    if (ends_together(a[i].kind) && compatible(a[i], b[j]) && distance(a[i].end, b[j].end) <= kEndsAgree) {
      anchors.push_back({i++, j++});
    } else if (a[i].end <= b[j].end) {
      ++i;
    } else {
      ++j;
    }
  }
  std::vector<ItemPair> pairs;
  ItemPair from{};
  for (const ItemPair& anchor : anchors) {
    fill(a, b, from, anchor, pairs);
    pairs.push_back(anchor);
    from = {anchor.a + 1, anchor.b + 1};
  }
  fill(a, b, from, {static_cast<std::uint32_t>(a.size()), static_cast<std::uint32_t>(b.size())}, pairs);
  return pairs;
}

std::vector<ItemPair> match_sends(Items sent, Items received) {
  std::vector<ItemPair> best;
  for (std::int64_t shift = -kMostSendShift; shift <= kMostSendShift; ++shift) {
    std::vector<ItemPair> pairs = pairs_at(sent, received, shift);
    if (pairs.size() <= best.size()) continue;
    const bool possible = std::all_of(pairs.begin(), pairs.end(), [&](const ItemPair& pair) {
      return received[pair.b].end + kEndsAgree >= sent[pair.a].start;
    });
    if (possible) best = std::move(pairs);
  }
  return best;
}

}  // namespace memwall
