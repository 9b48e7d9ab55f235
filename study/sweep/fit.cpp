#include "study/sweep/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <utility>

#include "sim/error.h"

namespace memwall {
namespace {

class EdgeSearch {
 public:
  EdgeSearch(std::size_t count, const FitQuestion& holds) : count_(count), holds_(holds) {}

  FitEdge run() {
    if (count_ <= kMostScanned) {
      std::vector<std::size_t> all(count_);
      std::iota(all.begin(), all.end(), std::size_t{0});
      ask(all);
    } else {
      search();
    }
    FitEdge edge;
    for (const auto& [value, holds] : known_) {
      edge.probed.push_back(value);
      if (holds) edge.last = value;
    }
    for (const auto& [value, holds] : known_)
      if (!holds && edge.last && value < *edge.last) edge.anomalies.push_back(value);
    return edge;
  }

 private:
  void ask(std::vector<std::size_t> values) {
    std::erase_if(values, [&](std::size_t value) { return known_.contains(value); });
    std::ranges::sort(values);
    values.erase(std::unique(values.begin(), values.end()), values.end());
    if (values.empty()) return;
    const std::vector<bool> holds = holds_(values);
    for (std::size_t i = 0; i < values.size(); ++i) known_[values[i]] = holds[i];
  }

  // Between the last value known to hold and the next known not to, until they are neighbours; then values beside, and
  // from the last of these that holds once more.
  void search() {
    ask({0, count_ - 1});
    for (std::size_t rounds = 0; rounds < count_; ++rounds) {
      bisect();
      const std::optional<std::size_t> last = last_known();
      check(last);
      if (last_known() == last) return;
    }
  }

  std::optional<std::size_t> last_known() const {
    for (auto at = known_.rbegin(); at != known_.rend(); ++at)
      if (at->second) return at->first;
    return std::nullopt;
  }

  void bisect() {
    const std::optional<std::size_t> last = last_known();
    if (!last || *last + 1 == count_) return;
    std::size_t low = *last, high = known_.upper_bound(*last)->first;
    while (high - low > 1) {
      const std::size_t middle = low + (high - low) / 2;
      ask({middle});
      (known_[middle] ? low : high) = middle;
    }
  }

  void check(const std::optional<std::size_t>& last) {
    const std::size_t edge = last ? *last + 1 : 0;
    std::vector<std::size_t> values;
    for (std::size_t i = 1; i <= kChecks; ++i) {
      if (edge > 0) values.push_back(edge * i / (kChecks + 1));
      if (edge < count_) values.push_back(edge + (count_ - 1 - edge) * i / (kChecks + 1));
    }
    ask(std::move(values));
  }

  const std::size_t count_;
  const FitQuestion& holds_;
  std::map<std::size_t, bool> known_;
};

// How many values may be looked at, for those who wait: the search goes on beyond where it meets anomalies.
std::size_t most_probes(std::size_t count) {
  if (count <= kMostScanned) return count;
  return 2 + static_cast<std::size_t>(std::bit_width(count)) + 2 * kChecks;
}

// Throws UsageError where values have no order.
std::vector<std::string> ascending(const Axis& axis) {
  std::vector<std::pair<double, std::string>> values;
  FieldUnit unit;
  for (const std::string& value : axis.values) {
    const std::optional<TypedNumber> number = typed_number(value);
    if (!number || (!values.empty() && !(number->unit == unit)))
      throw UsageError(fmt::format("Axis {}: its value {} is {}; expected numbers of one unit, which have a largest.",
                                   axis.name, value, number ? "of another unit than those before" : "no number"));
    unit = number->unit;
    values.emplace_back(number->value, value);
  }
  std::ranges::stable_sort(values, {}, &std::pair<double, std::string>::first);
  std::vector<std::string> texts;
  for (auto& [number, text] : values)
    if (texts.empty() || texts.back() != text) texts.push_back(std::move(text));
  return texts;
}

}  // namespace

FitEdge last_that_holds(std::size_t count, const FitQuestion& holds) { return EdgeSearch(count, holds).run(); }

const FitProbe* FitResult::probe(std::size_t value) const {
  const auto found = std::ranges::find(probes, value, &FitProbe::value);
  return found == probes.end() ? nullptr : &*found;
}

const FitProbe* FitResult::next() const {
  const std::size_t from = edge.last ? *edge.last + 1 : 0;
  const auto found = std::ranges::find_if(probes, [&](const FitProbe& p) { return p.value >= from; });
  return found == probes.end() ? nullptr : &*found;
}

namespace {

// Values that are refused before a point runs, for being too large, say, fail as those do that are refused later.
SweepResult points_or_refusals(Study& study, const SweepRequest& request, SweepJournal* journal,
                               const SweepWatch& watch) {
  try {
    return sweep(study, request, journal, watch);
  } catch (const UsageError& error) {
    SweepResult refused;
    for (const std::string& value : request.space.axes.front().values)
      refused.points.push_back(
          {.values = {value}, .scenario = request.base, .record = {.error = error.what(), .cause = "usage"}});
    return refused;
  }
}

}  // namespace

FitResult fit(Study& study, const FitRequest& request, SweepJournal* journal, const FitWatch& watch) {
  if (request.conditions.empty()) throw UsageError("There is no condition; expected one, as in --where fits.");
  if (request.axis.condition) throw UsageError("The axis of a fit stands alone; leave out its condition (if ...).");
  FitResult result;
  result.values = ascending(request.axis);
  if (!request.largest) std::ranges::reverse(result.values);
  result.was_scanned = result.values.size() <= kMostScanned;
  const std::size_t most = most_probes(result.values.size());
  const auto holds = [&](const std::vector<std::size_t>& indices) {
    SweepRequest some{.base = request.base,
                      .space = {},
                      .conditions = request.conditions,
                      .fields = request.fields,
                      .jobs = request.jobs,
                      .accept_gaps = request.accept_gaps,
                      .written_out = request.written_out};
    some.space.axes.push_back({.name = request.axis.name, .values = {}});
    for (const std::size_t i : indices) some.space.axes.front().values.push_back(result.values[i]);
    const std::size_t before = result.probes.size();
    const SweepResult points = points_or_refusals(study, some, journal, [&](const SweepProgress& p) {
      if (watch) watch(before + p.done, std::max(most, before + p.of));
    });
    std::vector<bool> meets;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      FitProbe probe{indices[i], points.points[i], {}};
      for (const std::size_t broken : probe.point.broken) probe.broken.push_back(request.conditions[broken]);
      meets.push_back(probe.point.meets);
      result.probes.push_back(std::move(probe));
    }
    return meets;
  };
  result.edge = last_that_holds(result.values.size(), holds);
  std::ranges::sort(result.probes, {}, &FitProbe::value);
  // A value that makes no sense says nothing of those behind it.
  std::erase_if(result.edge.anomalies, [&](std::size_t value) { return !result.probe(value)->point.ran(); });
  return result;
}

}  // namespace memwall
