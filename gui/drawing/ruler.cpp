#include "gui/drawing/ruler.h"

#include <algorithm>
#include <cmath>

#include "gui/drawing/canvas_drawing.h"
#include "traces/figure/axis.h"
#include "traces/figure/text_metrics.h"

namespace memwall::gui {
namespace {

constexpr double kTickWidth = 105;  // pixels for a tick and its number
constexpr double kStepRoom = 6;    // pixels between lines of steps
constexpr double kRulerText = 10;

}  // namespace

std::vector<RulerTick> ruler_ticks(const Viewport& viewport) {
  const TimeRange visible = viewport.visible();
  const ScaledUnit unit = time_unit(to_seconds(visible.length()));
  const double low = to_seconds(visible.begin) / unit.factor, high = to_seconds(visible.end) / unit.factor;
  const int most = std::max(2, static_cast<int>(viewport.width() / kTickWidth));
  const double step = nice_step(high - low, most - 1);
  std::vector<RulerTick> ticks;
  for (const double value : nice_ticks(low, high, most)) {
    const double x = viewport.x(from_seconds(value * unit.factor));
    ticks.push_back({x, format_tick(value, step) + " " + unit.name});
  }
  return ticks;
}

std::vector<StepLine> step_lines(const CanvasState& state) {
  std::vector<StepLine> lines;
  if (state.runs.empty()) return lines;
  const std::vector<StepWindow>& steps = state.runs[0].outline().steps;
  double closest = state.viewport.width(), last = -closest;
  for (const StepWindow& step : steps) {
    if (step.rank != steps.front().rank) continue;
    const double x = state.viewport.x(step.begin), end = state.viewport.x(step.end);
    if (last > -state.viewport.width()) closest = std::min(closest, x - last);
    last = x;
    if (end < 0 || x > state.viewport.width()) continue;
    lines.push_back({x, step.name});
  }
  if (closest < kStepRoom) lines.clear();
  return lines;
}

void draw_grid(const CanvasState& state, const Theme& theme, double top, double bottom, Figure& figure) {
  for (const RulerTick& tick : ruler_ticks(state.viewport)) {
    const double x = std::round(kTitleWidth + tick.x) + 0.5;
    figure.add(Line{{x, top}, {x, bottom}, theme.grid});
  }
}

void draw_step_lines(const CanvasState& state, const Theme& theme, double top, double bottom, Figure& figure) {
  Color color = theme.text;
  color.opacity = 150;
  for (const StepLine& step : step_lines(state)) {
    if (step.x < 0) continue;
    const double x = std::round(kTitleWidth + step.x) + 0.5;
    figure.add(Line{{x, top}, {x, bottom}, color, 1, true});
  }
}

void draw_ruler(const CanvasState& state, const Theme& theme, double width, Figure& figure) {
  figure.add(Rectangle{0, 0, width, kRulerHeight, theme.band});
  figure.add(Line{{0, kRulerHeight - 0.5}, {width, kRulerHeight - 0.5}, theme.border});
  for (const RulerTick& tick : ruler_ticks(state.viewport)) {
    const double x = std::round(kTitleWidth + tick.x) + 0.5;
    figure.add(Line{{x, kRulerHeight - 5}, {x, kRulerHeight - 1}, theme.axis});
    if (x + text_width(tick.text, kRulerText) + 3 < width)
      figure.add(Text{{x + 3, kRulerHeight - 4}, tick.text, kRulerText, Anchor::start, theme.faint_text});
  }
  const std::vector<StepLine> steps = step_lines(state);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double from = kTitleWidth + std::max(0.0, steps[i].x);
    const double to = i + 1 < steps.size() ? kTitleWidth + steps[i + 1].x : width;
    std::string text = fit_text(steps[i].text, to - from - 6, kRulerText, true);
    if (steps[i].x >= 0) figure.add(Line{{from + 0.5, 1}, {from + 0.5, kRulerHeight - 1}, theme.axis});
    if (!text.empty()) figure.add(Text{{from + 4, 10}, std::move(text), kRulerText, Anchor::start, theme.text, true});
  }
}

}  // namespace memwall::gui
