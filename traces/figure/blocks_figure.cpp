#include "traces/figure/blocks_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>

#include "traces/figure/memory_marks.h"
#include "traces/figure/palette.h"
#include "traces/figure/text_metrics.h"

namespace memwall {
namespace {

using namespace plot;

constexpr double kBlocksHeight = 420;
constexpr double kLeastBand = 0.4;     // points; what is lower is summed
constexpr double kLabelHeight = 11.5;  // a band of this height can hold a text
constexpr double kLabelWidth = 60;
constexpr double kBandText = 9;

// Neighbours of one kind are told apart by three shades of its colour.
Color shade(Color color, std::size_t number) {
  const double white = 0.16 * static_cast<double>(number % 3);
  const auto mix = [&](std::uint8_t c) { return static_cast<std::uint8_t>(c + (255 - c) * white); };
  return {mix(color.red), mix(color.green), mix(color.blue), color.opacity};
}

class BlocksDrawing {
 public:
  explicit BlocksDrawing(const BlocksChart& chart) : chart_(chart) {}

  Figure draw() {
    figure_.width = kFigureWidth;
    figure_.title = chart_.title;
    area_ = {kMargin + 62, 0, kFigureWidth - 2 * kMargin - 62 - 8, kBlocksHeight};
    stack();
    double y = draw_title(figure_, chart_.title, chart_.subtitle);
    y = draw_legend(figure_, kMargin, y, kFigureWidth - kMargin, legend());
    area_.top = y + 18;
    const double strip = chart_.phases.empty() ? 0 : kPhaseStrip;
    figure_.height = area_.bottom() + strip + kBelowInstants;
    const ScaledUnit unit = byte_unit(top_);
    draw_instant_axis(figure_, area_, chart_.unit, chart_.begin, chart_.end, strip);
    draw_value_axis(figure_, area_, top_, unit, fmt::format("memory ({})", unit.name), 9);
    draw_phase_strip(figure_, area_, chart_.unit, chart_.phases, chart_.begin, chart_.end);
    for (std::size_t i = 0; i < stack_.bands.size(); ++i) draw_band(stack_.bands[i], i);
    draw_summed();
    for (const BlockBand& band : stack_.bands) label_band(band);
    for (const MemoryOutline& outline : chart_.outlines) draw_outline(outline);
    draw_instant_marks(figure_, area_, chart_.marks, chart_.begin, chart_.end);
    draw_capacity_and_peak();
    return std::move(figure_);
  }

 private:
  // How large the picture gets decides which blocks are high enough for a band.
  void stack() {
    occupied_ = most_at_once(chart_.blocks, chart_.begin, chart_.end);
    for (const MemoryOutline& outline : chart_.outlines)
      for (const Bytes bytes : outline.values) occupied_ = std::max(occupied_, bytes);
    const Bytes highest = is_near(chart_.capacity, occupied_) ? std::max(occupied_, chart_.capacity) : occupied_;
    top_ = std::max<double>(1, static_cast<double>(highest) * 1.08);
    const auto least = static_cast<Bytes>(kLeastBand / kBlocksHeight * top_) + 1;
    stack_ = stack_blocks(chart_.blocks, chart_.begin, chart_.end, {.width = area_.width, .least = least});
  }

  double y(Bytes bytes) const { return Scale{0, top_, area_.bottom(), area_.top}(static_cast<double>(bytes)); }
  double x(std::size_t column) const {
    return column < stack_.columns.size() ? area_.left + stack_.columns[column].x : area_.right();
  }
  Color color_of(const BlockBand& band, std::size_t number) const {
    return shade(palette::color_of(chart_.kinds[chart_.blocks[band.block].kind]), number);
  }

  std::vector<LegendEntry> legend() const {
    std::vector<bool> occurs(chart_.kinds.size(), false);
    for (const BlockBand& band : stack_.bands) occurs[chart_.blocks[band.block].kind] = true;
    std::vector<LegendEntry> entries;
    for (std::size_t i = 0; i < occurs.size(); ++i)
      if (occurs[i]) entries.push_back({chart_.kinds[i], palette::color_of(chart_.kinds[i])});
    if (stack_.summed_blocks > 0)
      entries.push_back(
          {fmt::format("{} smaller than {}, added up", format_tick(static_cast<double>(stack_.summed_blocks), 1),
                       format_bytes(stack_.least)),
           palette::kGray});
    for (const MemoryOutline& outline : chart_.outlines)
      entries.push_back({outline.name, palette::kText, LegendMark::line});
    if (is_near(chart_.capacity, occupied_)) entries.push_back({"capacity", palette::kLimit, LegendMark::dashes});
    if (stack_.unseen_blocks > 0)
      entries.push_back(
          {fmt::format("{} too short to be seen", format_tick(static_cast<double>(stack_.unseen_blocks), 1)),
           palette::kBackground});
    return entries;
  }

  // "12.6 MB activation", where it was made, how long it lives.
  std::string story_of(const BlockLife& block) const {
    const bool before = block.begin <= chart_.begin, after = block.end > chart_.end;
    std::string life;
    if (before && after)
      life = "lives all the time";
    else if (before)
      life = "lived already, freed at " + format_instant(chart_.unit, block.end);
    else
      life = fmt::format("from {} {}", format_instant(chart_.unit, block.begin),
                         after ? "to the end" : "to " + format_instant(chart_.unit, block.end));
    return fmt::format("{}, {}\n{}\nmade in phase {}; {}", format_bytes(block.bytes), chart_.kinds[block.kind],
                       chart_.sources[block.source], chart_.phase_names[block.phase], life);
  }

  void draw_band(const BlockBand& band, std::size_t number) {
    const BlockLife& block = chart_.blocks[band.block];
    std::vector<Point> upper, lower;
    for (std::size_t i = 0; i < band.steps.size(); ++i) {
      const double from = x(band.steps[i].column);
      const double to = x(i + 1 < band.steps.size() ? band.steps[i + 1].column : band.end_column);
      const double floor = y(band.steps[i].floor), ceiling = y(band.steps[i].floor + block.bytes);
      upper.insert(upper.end(), {{from, ceiling}, {to, ceiling}});
      lower.insert(lower.end(), {{from, floor}, {to, floor}});
    }
    const Color color = color_of(band, number);
    if (band.steps.size() == 1) {
      figure_.add(Rectangle{upper[0].x, upper[0].y, upper[1].x - upper[0].x, lower[0].y - upper[0].y, color},
                  story_of(block));
      return;
    }
    upper.insert(upper.end(), lower.rbegin(), lower.rend());
    figure_.add(Polyline{std::move(upper), kNoColor, 1, color}, story_of(block));
  }

  // In the widest part of a band, where it is high and wide enough.
  void label_band(const BlockBand& band) {
    const BlockLife& block = chart_.blocks[band.block];
    if (y(0) - y(block.bytes) < kLabelHeight) return;
    double best = 0, left = 0;
    Bytes floor = 0;
    for (std::size_t i = 0; i < band.steps.size(); ++i) {
      const double from = x(band.steps[i].column);
      const double to = x(i + 1 < band.steps.size() ? band.steps[i + 1].column : band.end_column);
      if (to - from > best) best = to - from, left = from, floor = band.steps[i].floor;
    }
    if (best < kLabelWidth) return;
    const std::string text =
        fit_text(format_bytes(block.bytes) + "  " + chart_.sources[block.source], best - 8, kBandText);
    const auto number = static_cast<std::size_t>(&band - stack_.bands.data());
    figure_.add(Text{{left + 4, (y(floor) + y(floor + block.bytes)) / 2 + 3},
                     text,
                     kBandText,
                     Anchor::start,
                     palette::text_on(color_of(band, number))});
  }

  void draw_summed() {
    if (stack_.summed_blocks == 0) return;
    std::vector<Point> upper, lower;
    for (std::size_t column = 0; column < stack_.columns.size(); ++column) {
      const double ceiling = y(stack_.totals[column]), floor = y(stack_.totals[column] - stack_.summed[column]);
      for (const auto& [points, height] : {std::pair{&upper, ceiling}, std::pair{&lower, floor}}) {
        if (!points->empty() && points->back().y == height) continue;
        if (!points->empty()) points->push_back({x(column), points->back().y});
        points->push_back({x(column), height});
      }
    }
    for (std::vector<Point>* points : {&upper, &lower}) points->push_back({area_.right(), points->back().y});
    upper.insert(upper.end(), lower.rbegin(), lower.rend());
    figure_.add(Polyline{std::move(upper), kNoColor, 1, palette::kGray},
                fmt::format("{} blocks smaller than {}: at most {}", stack_.summed_blocks, format_bytes(stack_.least),
                            format_bytes(*std::max_element(stack_.summed.begin(), stack_.summed.end()))));
  }

  void draw_outline(const MemoryOutline& outline) {
    if (outline.times.empty()) return;
    const std::vector<DrawnInstant> drawn =
        thin_instants(outline.times, time_scale(area_, chart_.begin, chart_.end), area_.left, area_.right(),
                      [&](std::size_t i) { return outline.values[i]; });
    std::vector<Point> points;
    for (const DrawnInstant& instant : drawn) {
      const double height = y(outline.values[instant.index]);
      if (!points.empty() && points.back().y == height) continue;
      if (!points.empty()) points.push_back({instant.x, points.back().y});
      points.push_back({instant.x, height});
    }
    if (points.empty()) return;
    points.push_back({area_.right(), points.back().y});
    figure_.add(Polyline{std::move(points), palette::kText, 1}, outline.name);
  }

  void draw_capacity_and_peak() {
    const double at =
        std::clamp(time_scale(area_, chart_.begin, chart_.end)(to_seconds(stack_.peak_at)), area_.left, area_.right());
    draw_capacity(figure_, area_, top_, chart_.capacity, occupied_, at < area_.left + area_.width / 2);
    if (stack_.peak == 0) return;
    draw_peak(figure_, area_, {at, y(stack_.peak)},
              "peak " + format_bytes(stack_.peak) + " requested at " + format_instant(chart_.unit, stack_.peak_at),
              [this](double from, double to) {
                const Scale scale = time_scale(area_, chart_.begin, chart_.end);
                double highest = area_.bottom();
                for (const MemoryOutline& outline : chart_.outlines)
                  highest = std::min(highest, y(most_between(outline.times, outline.values, scale, from, to)));
                return highest;
              });
  }

  const BlocksChart& chart_;
  Figure figure_;
  Area area_;
  BlockStack stack_;
  Bytes occupied_ = 0;  // at most, cached blocks included
  double top_ = 1;
};

}  // namespace

Figure draw_blocks(const BlocksChart& chart) { return BlocksDrawing(chart).draw(); }

}  // namespace memwall
