#include "gui/drawing/run_figures.h"

#include "sim/error.h"

namespace memwall::gui {
const std::vector<std::string>& run_figure_names() {
  static const std::vector<std::string> names{"timeline", "memory", "tiers", "links", "compare"};
  return names;
}
Figure run_figure(const std::vector<const Run*>&, const std::vector<std::string>&, const RunFigureRequest&) {
  throw UsageError("not implemented.");
}
TimeRange parse_range(const std::string&, const Run&, const std::string&) { throw UsageError("not implemented."); }
}  // namespace memwall::gui
