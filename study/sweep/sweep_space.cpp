#include "study/sweep/sweep_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "sim/error.h"

namespace memwall {
namespace {

// Sebastiano Vigna's SplitMix64 (2015): the same numbers on every machine, which std distributions are not.
class RandomNumbers {
 public:
  explicit RandomNumbers(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  double share() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

// Axes that are drawn together: one, or a zip.
using AxisGroup = std::vector<std::size_t>;

class PointMaker {
 public:
  explicit PointMaker(const SweepSpace& space) : space_(space) { group_axes(); }

  std::vector<PointValues> run() {
    require_conditions();
    if (space_.sampling == Sampling::grid)
      add_grid();
    else
      add_samples();
    return std::move(points_);
  }

 private:
  [[noreturn]] static void fail(const std::string& sentence) { throw UsageError(sentence); }

  std::size_t index_of(const std::string& name, const std::string& where) const {
    const auto found = std::ranges::find(space_.axes, name, &Axis::name);
    if (found != space_.axes.end()) return static_cast<std::size_t>(found - space_.axes.begin());
    std::vector<std::string> names;
    for (const Axis& axis : space_.axes) names.push_back(axis.name);
    fail(fmt::format("{} names axis \"{}\", which there is not; expected one of {}.{}", where, name, listed(names),
                     did_you_mean(name, names)));
  }

  void group_axes() {
    std::set<std::string> names;
    for (const Axis& axis : space_.axes)
      if (!names.insert(axis.name).second)
        fail(fmt::format("Axis \"{}\" is given twice; expected it once.", axis.name));
    std::vector<std::size_t> zip_of(space_.axes.size(), space_.zips.size());
    for (std::size_t z = 0; z < space_.zips.size(); ++z)
      for (const std::string& name : space_.zips[z]) {
        std::size_t& zip = zip_of[index_of(name, "A zip")];
        if (zip != space_.zips.size()) fail(fmt::format("Axis \"{}\" is zipped twice; expected it once.", name));
        zip = z;
      }
    std::vector<bool> is_made(space_.zips.size(), false);
    for (std::size_t a = 0; a < space_.axes.size(); ++a) {
      const std::size_t zip = zip_of[a];
      if (zip == space_.zips.size()) {
        groups_.push_back({a});
      } else if (!is_made[zip]) {
        is_made[zip] = true;
        groups_.push_back(zipped(space_.zips[zip]));
      }
    }
  }

  AxisGroup zipped(const std::vector<std::string>& names) const {
    AxisGroup group;
    for (const std::string& name : names) group.push_back(index_of(name, "A zip"));
    for (const std::size_t a : group)
      if (space_.axes[a].values.size() != space_.axes[group.front()].values.size())
        fail(fmt::format("Axes \"{}\" and \"{}\" are zipped and have {} and {} values; expected as many.",
                         space_.axes[group.front()].name, space_.axes[a].name, space_.axes[group.front()].values.size(),
                         space_.axes[a].values.size()));
    return group;
  }

  void require_conditions() const {
    for (const Axis& axis : space_.axes)
      if (axis.condition) {
        const std::size_t other = index_of(axis.condition->axis, fmt::format("The condition of \"{}\"", axis.name));
        if (space_.axes[other].condition)
          fail(fmt::format("The condition of \"{}\" names \"{}\", which has one itself; expected an axis without.",
                           axis.name, axis.condition->axis));
        if (std::ranges::none_of(space_.axes[other].values,
                                 [&](const std::string& value) { return axis.condition->holds_for(value); }))
          fail(fmt::format("The condition of \"{}\" holds for no value of \"{}\" ({}); expected one of them.",
                           axis.name, axis.condition->axis, listed(space_.axes[other].values)));
      }
  }

  std::size_t length(const AxisGroup& group) const { return space_.axes[group.front()].values.size(); }

  void add_grid() {
    double count = 1;
    for (const AxisGroup& group : groups_) count *= static_cast<double>(length(group));
    if (count > static_cast<double>(kMostPoints))
      fail(fmt::format("The axes make {:.3g} points; expected at most {}. --sample latin:1000 draws some.", count,
                       kMostPoints));
    std::vector<std::size_t> at(groups_.size(), 0);
    for (;;) {
      PointValues values(space_.axes.size());
      for (std::size_t g = 0; g < groups_.size(); ++g)
        for (const std::size_t a : groups_[g]) values[a] = space_.axes[a].values[at[g]];
      add(std::move(values));
      std::size_t g = groups_.size();
      while (g > 0 && ++at[g - 1] == length(groups_[g - 1])) at[--g] = 0;
      if (g == 0) return;
    }
  }

  void add_samples() {
    if (space_.samples == 0 || space_.samples > kMostPoints)
      fail(fmt::format("--sample: found {} samples; expected 1 to {}.", space_.samples, kMostPoints));
    RandomNumbers random(space_.seed);
    // By group: in which of the equal parts each sample lies.
    std::vector<std::vector<std::size_t>> parts(groups_.size());
    if (space_.sampling == Sampling::latin)
      for (std::vector<std::size_t>& order : parts) order = shuffled(space_.samples, random);
    for (std::size_t i = 0; i < space_.samples; ++i) {
      PointValues values(space_.axes.size());
      for (std::size_t g = 0; g < groups_.size(); ++g) {
        double share = random.share();
        if (space_.sampling == Sampling::latin)
          share = (static_cast<double>(parts[g][i]) + share) / static_cast<double>(space_.samples);
        for (const std::size_t a : groups_[g]) values[a] = drawn(groups_[g], space_.axes[a], share);
      }
      add(std::move(values));
    }
  }

  static std::vector<std::size_t> shuffled(std::size_t count, RandomNumbers& random) {
    std::vector<std::size_t> order(count);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.next() % i]);
    return order;
  }

  static std::string drawn(const AxisGroup& group, const Axis& axis, double share) {
    if (!axis.range || group.size() > 1)
      return axis.values[std::min(axis.values.size() - 1,
                                  static_cast<std::size_t>(share * static_cast<double>(axis.values.size())))];
    const AxisRange& range = *axis.range;
    if (range.is_whole && !range.is_logarithmic)
      return range_value(range, std::min(range.high, std::floor(range.low + share * (range.high - range.low + 1))));
    return range_value(range, range.is_logarithmic ? range.low * std::pow(range.high / range.low, share)
                                                   : range.low + share * (range.high - range.low));
  }

  void add(PointValues values) {
    for (std::size_t a = 0; a < space_.axes.size(); ++a) {
      const Axis& axis = space_.axes[a];
      if (!axis.condition) continue;
      const std::size_t other = index_of(axis.condition->axis, axis.name);
      if (!axis.condition->holds_for(values[other])) values[a].clear();
    }
    if (seen_.insert(values).second) points_.push_back(std::move(values));
  }

  const SweepSpace& space_;
  std::vector<AxisGroup> groups_;
  std::set<PointValues> seen_;
  std::vector<PointValues> points_;
};

}  // namespace

bool are_zipped(const std::vector<std::vector<std::string>>& zips, const std::string& one, const std::string& other) {
  return std::ranges::any_of(zips, [&](const std::vector<std::string>& zip) {
    return std::ranges::find(zip, one) != zip.end() && std::ranges::find(zip, other) != zip.end();
  });
}

std::vector<PointValues> points_of(const SweepSpace& space) { return PointMaker(space).run(); }

void set_sampling(const std::string& text, SweepSpace& space) {
  const auto refuse = [&] {
    throw UsageError(
        fmt::format("--sample {}: expected random:N or latin:N, with a seed behind it where wanted "
                    "(latin:100:7).",
                    text));
  };
  const std::size_t colon = text.find(':');
  const std::string kind = text.substr(0, colon);
  if (colon == std::string::npos || (kind != "random" && kind != "latin")) refuse();
  space.sampling = kind == "random" ? Sampling::random : Sampling::latin;
  const char* at = text.data() + colon + 1;
  const char* const end = text.data() + text.size();
  const auto count = std::from_chars(at, end, space.samples);
  if (count.ec != std::errc() || space.samples == 0) refuse();
  if (count.ptr == end) return;
  if (*count.ptr != ':') refuse();
  const auto seed = std::from_chars(count.ptr + 1, end, space.seed);
  if (seed.ec != std::errc() || seed.ptr != end) refuse();
}

}  // namespace memwall
