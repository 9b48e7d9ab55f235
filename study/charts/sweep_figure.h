// Which picture of a sweep was asked for, as one types it:
//
//   line:x=pcie,y=step_time         a field over an axis, a line per combination of the others
//   pareto:x=peak,y=step_time       points by two fields, with the Pareto front
//   heatmap:x=batch,y=pcie,value=peak,policy=none
//   tornado:value=step_time         what each axis alone changes
//   budget                          step time over the budget, a line per policy
//
// `log=x+y` asks for logarithmic axes, `more=x` says of which field more is better, NAME=VALUE takes the points at
// which an axis has that value. What is not said is chosen.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "study/sweep/sweep.h"

namespace memwall {

enum class SweepFigureKind : std::uint8_t { line, pareto, heatmap, tornado, budget };

// "objective" in place of a field's name is the sweep's.
inline constexpr const char* kObjectiveName = "objective";

struct SweepFigure {
  SweepFigureKind kind = SweepFigureKind::line;
  std::string x{};                    // of line, heatmap and budget an axis; of pareto a field or a numeric axis
  std::string y{};                    // of line, pareto and budget a field; of heatmap an axis
  std::string value{};                // of heatmap and tornado a field
  std::vector<std::string> series{};  // axes whose combinations are series
  bool log_x = false, log_y = false, log_value = false;
  bool more_x = false, more_y = false;                       // of pareto
  std::vector<std::pair<std::string, std::string>> fixed{};  // axes and the value that each has
};

// All that was not said is chosen from the sweep's axes. Throws UsageError with the text, what was found and what was
// expected: a kind, name or value that is not there, axes that the picture has no place for. Names of fields are not
// looked up.
SweepFigure parse_sweep_figure(const std::string& text, const SweepRequest& request);

// The fields that the sweep has to find for it.
std::vector<std::string> fields_of(const SweepFigure& figure, const SweepRequest& request);

// "line", "pareto", ...
std::vector<std::string> sweep_figure_names();

}  // namespace memwall
