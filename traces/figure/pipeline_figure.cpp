#include "traces/figure/pipeline_figure.h"

#include <algorithm>

#include "traces/figure/palette.h"
#include "traces/figure/plot.h"
#include "traces/figure/text_metrics.h"

namespace memwall {
namespace {

using namespace plot;

constexpr double kPassHeight = 20, kMessageHeight = 3, kPipelineRowHeight = 30, kNumberSize = 8;
constexpr double kThinnest = 0.4;  // points: below it bars are drawn as one

Color color_of_work(PipelineWork work) {
  switch (work) {
    case PipelineWork::forward:
      return palette::color_of("forward");
    case PipelineWork::backward:
      return palette::color_of("backward");
    default:
      return palette::color_of("optimizer");
  }
}

// A shade for each chunk, and a second one for every other micro-batch: neighbours are told apart.
Color shade(const PipelinePassBar& pass, std::uint32_t chunks) {
  Color color = color_of_work(pass.work);
  if (pass.work == PipelineWork::update) return color;
  const double by_chunk = chunks > 1 ? 0.55 * pass.chunk / (chunks - 1) : 0;
  const double rest = 1 - by_chunk - (pass.microbatch % 2 == 1 ? 0.15 : 0);
  const auto paler = [rest](std::uint8_t c) {
    return static_cast<std::uint8_t>(255 - static_cast<int>((255 - c) * rest));
  };
  return {paler(color.red), paler(color.green), paler(color.blue)};
}

bool look_alike(const PipelinePassBar& a, const PipelinePassBar& b) { return a.work == b.work && a.chunk == b.chunk; }

class PipelineDrawing {
 public:
  explicit PipelineDrawing(const PipelineChart& chart) : chart_(chart) {
    figure_.width = kFigureWidth;
    figure_.title = chart.title;
    double widest = 40;
    for (const PipelineRow& row : chart.rows)
      widest =
          std::max({widest, text_width(row.name, kLabelSize, true), std::min(170.0, text_width(row.note, kSmallSize))});
    area_.left = kMargin + widest + 12;
    area_.width = kFigureWidth - kMargin - 8 - area_.left;
  }

  Figure draw() && {
    area_.top = draw_title(figure_, chart_.title, chart_.subtitle);
    area_.top = draw_legend(figure_, area_.left, area_.top, kFigureWidth - kMargin, legend()) + 4;
    area_.height = static_cast<double>(chart_.rows.size()) * kPipelineRowHeight;
    draw_time_axis(figure_, area_, chart_.begin, chart_.end);
    double y = area_.top;
    for (const PipelineRow& row : chart_.rows) {
      draw_row(row, y);
      y += kPipelineRowHeight;
    }
    figure_.height = area_.bottom() + 42;
    return std::move(figure_);
  }

 private:
  std::vector<LegendEntry> legend() const {
    std::vector<LegendEntry> entries{{"forward", color_of_work(PipelineWork::forward)},
                                     {"backward", color_of_work(PipelineWork::backward)}};
    if (chart_.chunks > 1) {
      const auto last = [&](PipelineWork work) {
        return shade({work, chart_.chunks - 1, 0, Time{}, Time{}, ""}, chart_.chunks);
      };
      entries.push_back({"forward, last chunk", last(PipelineWork::forward)});
      entries.push_back({"backward, last chunk", last(PipelineWork::backward)});
    }
    entries.push_back({"optimizer step", color_of_work(PipelineWork::update)});
    entries.push_back({"messages", palette::color_of("flow")});
    return entries;
  }

  double x(Time time) const {
    return time_scale(area_, chart_.begin, chart_.end)(to_seconds(std::clamp(time, chart_.begin, chart_.end)));
  }

  void draw_names(const PipelineRow& row, double y) {
    const double right = area_.left - 8, width = right - kMargin;
    figure_.add(Text{{right, y + 11},
                     fit_text(row.name, width, kLabelSize, true),
                     kLabelSize,
                     Anchor::end,
                     palette::kText,
                     true},
                row.name + " " + row.note);
    figure_.add(
        Text{{right, y + 22}, fit_text(row.note, width, kSmallSize), kSmallSize, Anchor::end, palette::kFaintText},
        row.note);
  }

  // White, and what is done on it.
  void draw_row(const PipelineRow& row, double y) {
    draw_names(row, y);
    figure_.add(Rectangle{area_.left, y + 2, area_.width, kPassHeight, palette::kBackground, palette::kGrid});
    for (std::size_t i = 0; i < row.passes.size();) i = draw_pass(row, i, y + 2);
    double last = -1;
    for (const PipelineMessageBar& message : row.messages) {
      if (message.end <= chart_.begin || message.begin >= chart_.end) continue;
      const double from = std::max(x(message.begin), last), to = std::max(x(message.end), from + kThinnest);
      if (to - last < kThinnest) continue;
      figure_.add(Rectangle{from, y + 3 + kPassHeight, to - from, kMessageHeight, palette::color_of("flow")});
      last = to;
    }
  }

  // Returns the first pass that it has not drawn.
  std::size_t draw_pass(const PipelineRow& row, std::size_t first, double y) {
    const PipelinePassBar& pass = row.passes[first];
    if (pass.end <= chart_.begin || pass.begin >= chart_.end) return first + 1;
    const double from = x(pass.begin);
    double to = x(pass.end);
    std::size_t next = first + 1;
    while (next < row.passes.size() && look_alike(pass, row.passes[next]) && x(row.passes[next].end) - from < kThinnest)
      to = x(row.passes[next++].end);
    const Color color = shade(pass, chart_.chunks);
    figure_.add(GroupBegin{pass.title});
    figure_.add(Rectangle{from, y, std::max(to - from, kThinnest / 2), kPassHeight, color});
    const std::string number = std::to_string(pass.microbatch);
    if (pass.work != PipelineWork::update && text_width(number, kNumberSize) + 2 < to - from)
      figure_.add(Text{
          {(from + to) / 2, y + kPassHeight / 2 + 3}, number, kNumberSize, Anchor::middle, palette::text_on(color)});
    figure_.add(GroupEnd{});
    return next;
  }

  const PipelineChart& chart_;
  Figure figure_;
  Area area_;
};

}  // namespace

Figure draw_pipeline(const PipelineChart& chart) { return PipelineDrawing(chart).draw(); }

}  // namespace memwall
