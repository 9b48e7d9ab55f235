// Two open runs op by op: pairs, lag, differences, the way from one time to the other.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "gui/model/run_analysis.h"
#include "gui/model/selection.h"
#include "gui/model/time_range.h"
#include "traces/run/analysis/compare.h"

namespace memwall::gui {

struct RunComparison {
  Comparison comparison;         // other less base
  std::vector<OpPair> pairs;     // ascending in base
  std::vector<OpPair> by_other;  // the same, ascending in other
  std::vector<LagPoint> lag;     // at the ends of all aligned device ops, ascending in time of base
  // Where in kLagBlock points in a row of `lag` the lag is lowest and highest: what lag_within() skips through.
  static constexpr std::size_t kLagBlock = 256;
  struct LagExtremes {
    std::size_t lowest = 0, highest = 0;  // indices into `lag`
  };
  std::vector<LagExtremes> lag_blocks;

  // The same op in the other of the two runs; nothing where it was added or removed.
  std::optional<OpRef> counterpart(OpRef op) const;
  // What to add to the second run's times so that the op and its counterpart begin together; 0 without one. As calls if
  // `op` is a call or one of the two does no work on a device.
  Duration shift_to(OpRef op, const RunAnalysis& base, const RunAnalysis& other) const;
  // Points within the range, ascending: all of them, or at most `most`: of each of most / 4 equal pieces of the range
  // the first, the lowest, the highest and the last. REQUIRES: most >= 4.
  std::vector<LagPoint> lag_within(TimeRange range, std::size_t most) const;
  // The last point before an instant of the base, at or before it, the first behind it; nothing where there is none.
  std::optional<LagPoint> last_before(Time time) const;
  std::optional<LagPoint> last_until(Time time) const;
  std::optional<LagPoint> first_behind(Time time) const;
};

// The progress is asked between the stages. Throws LoadCancelled.
std::shared_ptr<const RunComparison> compare_runs(const RunAnalysis& base, const RunAnalysis& other,
                                                  const LoadProgress& progress = {});

// The op of `comparison.comparison.ops[i]`'s kind that differs most in time (then in bytes; then the first), to jump
// to: of the second run where it was added, else of the first; kNoOp in `op` if none.
OpRef largest_example(const RunComparison& comparison, std::size_t i, const RunAnalysis& base,
                      const RunAnalysis& other);

}  // namespace memwall::gui
