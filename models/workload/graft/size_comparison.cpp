#include "models/workload/graft/size_comparison.h"

#include <algorithm>
#include <map>
#include <utility>

namespace memwall {
namespace {

// Where more of what is paired differs in shape, the programs are of different sizes.
constexpr double kFewDiffer = 0.3;
// Where as many of those differ as another batch makes them, they are.
constexpr double kMostDiffer = 0.7;

// Of one class of work, pairs of which both shapes are known.
struct SizeTally {
  std::size_t both = 0, differing = 0, as_batch = 0;
  // A shape that a profile does not say (a convolution's stride, before 2022) is concluded, and may be wrong: few that
  // differ mean nothing.
  bool differs() const { return static_cast<double>(differing) > kFewDiffer * static_cast<double>(both); }
  bool is_other_batch() const { return static_cast<double>(as_batch) >= kMostDiffer * static_cast<double>(differing); }
};

// How much larger the first is, where nothing but the number of samples can differ; 0 where something else does: of a
// convolution the images, of attention the batch, of other work one extent.
double batch_ratio(OperatorClass of, const Shape& m, const Shape& c) {
  if (m.size() != c.size()) return 0;
  double ratio = 0;
  for (std::size_t i = 0; i < m.size(); ++i) {
    if (m[i] == c[i]) continue;
    const bool may_differ = i == 0 || (of != OperatorClass::convolution && of != OperatorClass::attention);
    if (ratio != 0 || !may_differ || c[i] <= 0) return 0;
    ratio = static_cast<double>(m[i]) / static_cast<double>(c[i]);
  }
  return ratio;
}

}  // namespace

// Products, convolutions and attention each have to agree; elementwise work alone cannot tell a larger image of fewer
// samples from the same batch.
void compare_sizes(const Trace& measured, const Trace& complete, const std::vector<LinePair>& pairs,
                   GraftReport& report) {
  std::map<OperatorClass, SizeTally> tallies;
  std::map<double, std::size_t> counts;
  for (const LinePair& pair : pairs) {
    const Op &m = measured.ops[pair.measured.front()], &c = complete.ops[pair.complete.front()];
    if (pair.by == PairedBy::place || m.shape == 0 || c.shape == 0) continue;
    SizeTally& tally = tallies[is_product(m.operator_class) ? m.operator_class : OperatorClass::other];
    ++tally.both;
    const Shape &ours = measured.shapes[m.shape], &theirs = complete.shapes[c.shape];
    if (m.kind != OpKind::kernel || c.kind != OpKind::kernel || m.operator_class != c.operator_class || ours == theirs)
      continue;
    ++report.differing;
    ++tally.differing;
    const double ratio = batch_ratio(m.operator_class, ours, theirs);
    if (ratio <= 0) continue;
    ++tally.as_batch;
    ++counts[ratio];
  }
  const auto any = [&](auto holds) {
    return std::ranges::any_of(tallies, [&](const auto& entry) { return holds(entry.second); });
  };
  report.is_of_other_size = any([](const SizeTally& tally) { return tally.differs(); });
  if (!report.is_of_other_size || counts.empty()) return;
  const auto most = std::ranges::max_element(counts, {}, &std::pair<const double, std::size_t>::second);
  report.of_that_ratio = most->second;
  if (!any([](const SizeTally& tally) { return !tally.is_other_batch(); })) report.batch_ratio = most->first;
}

}  // namespace memwall
