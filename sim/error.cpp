#include "sim/error.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "sim/lower_case.h"

namespace memwall {
namespace {
// Letters that are inserted, left out, replaced or, side by side, exchanged.
std::size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before(b.size() + 1), row(b.size() + 1), next(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    next[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      next[j] = std::min({row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] != b[j - 1])});
      const bool exchanged = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (exchanged) next[j] = std::min(next[j], before[j - 2] + 1);
    }
    std::swap(before, row);
    std::swap(row, next);
  }
  return row.back();
}
}  // namespace

std::string nearest_name(const std::string& name, const std::vector<std::string>& known) {
  std::string best;
  std::tuple<std::size_t, bool, std::size_t> best_rank{};  // distance; is misspelt; letters to add
  // Names are told apart by their letters; who typed another case means them all the same.
  const std::string lower = in_lower_case(name);
  for (const std::string& candidate : known) {
    // A prefix that the user left unfinished is nearer than any misspelling, and the same in another case than that.
    // Of several that it begins the shortest: "batc" is "batch", not "batch_norm".
    const std::string other = in_lower_case(candidate);
    const bool prefix = !name.empty() && other.starts_with(lower);
    const std::size_t distance = other == lower ? 0 : prefix ? 1 : edit_distance(lower, other);
    const std::tuple rank(distance, !prefix, prefix ? other.size() : 0);
    if (distance * 2 <= std::max(name.size(), candidate.size()) && (best.empty() || rank < best_rank)) {
      best = candidate;
      best_rank = rank;
    }
  }
  return best;
}

std::string did_you_mean(const std::string& name, const std::vector<std::string>& known) {
  const std::string nearest = nearest_name(name, known);
  return nearest.empty() ? "" : " Did you mean '" + nearest + "'?";
}

std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

}  // namespace memwall
