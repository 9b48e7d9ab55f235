// Two open runs op by op: pairs, lag, differences, the way from one time to the other.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "gui/model/run_analysis.h"
#include "gui/model/selection.h"
#include "gui/model/time_range.h"
#include "traces/run/compare.h"

namespace memwall::gui {

struct RunComparison {
  Comparison comparison;         // other less base
  std::vector<OpPair> pairs;     // ascending in base
  std::vector<OpPair> by_other;  // the same, ascending in other
  std::vector<LagPoint> lag;     // at the ends of all aligned device ops, ascending in time of base

  // The same op in the other of the two runs; nothing where it was added or removed.
  std::optional<OpRef> counterpart(OpRef op) const;
  // What to add to the second run's times so that the op and its counterpart begin together; 0 without one.
  Duration shift_to(OpRef op, const RunAnalysis& base, const RunAnalysis& other) const;
  // At most `most` points within the range, extremes kept.
  std::vector<LagPoint> lag_within(TimeRange range, std::size_t most) const;
};

std::shared_ptr<const RunComparison> compare_runs(const RunAnalysis& base, const RunAnalysis& other);

// The op of the first row of `comparison.ops[i]`'s kind that differs most, to jump to; kNoOp in `op` if none.
OpRef largest_example(const RunComparison& comparison, std::size_t i, const RunAnalysis& base,
                      const RunAnalysis& other);

}  // namespace memwall::gui
