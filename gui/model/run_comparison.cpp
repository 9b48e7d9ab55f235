#include "gui/model/run_comparison.h"

namespace memwall::gui {
std::optional<OpRef> RunComparison::counterpart(OpRef) const { return std::nullopt; }
Duration RunComparison::shift_to(OpRef, const RunAnalysis&, const RunAnalysis&) const { return {}; }
std::vector<LagPoint> RunComparison::lag_within(TimeRange, std::size_t) const { return {}; }
std::shared_ptr<const RunComparison> compare_runs(const RunAnalysis&, const RunAnalysis&) { return nullptr; }
OpRef largest_example(const RunComparison&, std::size_t, const RunAnalysis&, const RunAnalysis&) { return {}; }
}  // namespace memwall::gui
