#include "gui/model/run_analysis.h"

namespace memwall::gui {
std::shared_ptr<const RunAnalysis> analyse(const RunSource& source, const LoadProgress& progress) {
  auto analysis = std::make_shared<RunAnalysis>();
  analysis->run = source.whole(progress);
  return analysis;
}
}  // namespace memwall::gui
