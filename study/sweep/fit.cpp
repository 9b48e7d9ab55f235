#include "study/sweep/fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "sim/error.h"

namespace memwall {
namespace {

class EdgeSearch {
 public:
  EdgeSearch(std::size_t count, const std::function<bool(std::size_t)>& holds) : count_(count), holds_(holds) {}

  FitEdge run() {
    if (count_ <= kMostScanned)
      for (std::size_t i = 0; i < count_; ++i) ask(i);
    else
      search();
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
  bool ask(std::size_t value) {
    if (const auto known = known_.find(value); known != known_.end()) return known->second;
    return known_[value] = holds_(value);
  }

  // Between the last value known to hold and the next known not to, until they are neighbours; then values beside, and
  // from the last of these that holds once more.
  void search() {
    ask(0);
    ask(count_ - 1);
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
      (ask(middle) ? low : high) = middle;
    }
  }

  void check(const std::optional<std::size_t>& last) {
    const std::size_t edge = last ? *last + 1 : 0;
    for (std::size_t i = 1; i <= kChecks; ++i) {
      if (edge > 0) ask(edge * i / (kChecks + 1));
      if (edge < count_) ask(edge + (count_ - 1 - edge) * i / (kChecks + 1));
    }
  }

  const std::size_t count_;
  const std::function<bool(std::size_t)>& holds_;
  std::map<std::size_t, bool> known_;
};

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
  for (auto& [number, text] : values) texts.push_back(std::move(text));
  return texts;
}

}  // namespace

FitEdge last_that_holds(std::size_t count, const std::function<bool(std::size_t)>& holds) {
  return EdgeSearch(count, holds).run();
}

const FitProbe* FitResult::probe(std::size_t value) const {
  const auto found = std::ranges::find(probes, value, &FitProbe::value);
  return found == probes.end() ? nullptr : &*found;
}

const FitProbe* FitResult::next() const {
  const std::size_t from = edge.last ? *edge.last + 1 : 0;
  const auto found = std::ranges::find_if(probes, [&](const FitProbe& p) { return p.value >= from; });
  return found == probes.end() ? nullptr : &*found;
}

FitResult fit(Study& study, const FitRequest& request, SweepJournal* journal, const SweepWatch& watch) {
  if (request.conditions.empty()) throw UsageError("There is no condition; expected one, as in --where fits.");
  if (request.axis.condition) throw UsageError("The axis of a fit stands alone; leave out its condition (if ...).");
  FitResult result;
  result.values = ascending(request.axis);
  if (!request.largest) std::ranges::reverse(result.values);
  result.was_scanned = result.values.size() <= kMostScanned;
  const auto probe = [&](std::size_t index, const std::vector<std::string>& conditions) {
    SweepRequest one{.base = request.base, .space = {}, .conditions = conditions};
    one.space.axes.push_back({.name = request.axis.name, .values = {result.values[index]}});
    return std::move(sweep(study, one, journal, watch).points.front());
  };
  result.edge = last_that_holds(result.values.size(), [&](std::size_t index) {
    FitProbe asked{index, probe(index, request.conditions), {}};
    const bool holds = asked.point.meets;
    if (!holds && asked.point.ran())
      for (const std::string& condition : request.conditions)
        if (!probe(index, {condition}).meets) asked.broken.push_back(condition);
    result.probes.push_back(std::move(asked));
    return holds;
  });
  std::ranges::sort(result.probes, {}, &FitProbe::value);
  return result;
}

}  // namespace memwall
