// Does the row of a tier reach its true peak, at the right height, and say what lies under the pointer?
#include <gtest/gtest.h>

#include <algorithm>

#include "gui/drawing/canvas_drawing.h"
#include "gui/drawing/pixel_columns.h"
#include "gui/drawing/row_drawing.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/tiered_run.h"
#include "traces/figure/axis.h"
#include "traces/figure/palette.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

using WholeRun = memwall::Run;

struct Scene {
  std::shared_ptr<const WholeRun> run;
  CanvasState state;
  Theme theme = light_theme();
  CanvasRow row;
  RowPlace place() const { return {state, theme, row, 220, 30, state.viewport.width(), 120}; }
  CanvasFrame draw() const {
    CanvasFrame frame;
    draw_occupancy_row(place(), frame);
    return frame;
  }
};

Scene scene() {
  GptShape shape;
  shape.layers = 4;
  shape.hidden = 64;
  shape.sequence = 32;
  shape.flops_per_second = shape.bytes_per_second = 1e10;
  shape.launch_cost = microseconds(5);
  Scene s;
  s.run = std::make_shared<const WholeRun>(tiered_run(gpt_step(shape), {}));
  s.state.runs.push_back(opened(s.run));
  s.state.viewport = Viewport(s.state.whole(), 600);
  s.row.kind = RowKind::occupancy;
  s.row.index = 0;
  return s;
}

std::vector<Polyline> areas(const CanvasFrame& frame, Color fill) {
  std::vector<Polyline> found;
  for (const Item& item : frame.figure.items)
    if (const auto* line = std::get_if<Polyline>(&item); line && line->fill == fill) found.push_back(*line);
  return found;
}

double highest(const Polyline& line) {
  return std::min_element(line.points.begin(), line.points.end(), [](Point a, Point b) { return a.y < b.y; })->y;
}

TEST(OccupancyRow, TheStackReachesThePeakAtItsInstantAndHeight) {
  const Scene s = scene();
  const CanvasFrame frame = s.draw();
  const TierResult& result = s.run->result.tiers[0];
  // The capacity is far above: the scale ends 6 % above what the allocator reserves at most.
  const double top = 1.06 * static_cast<double>(std::max(result.peak_reserved, result.peak_allocated));
  const double expected = 30 + 120 - 1 - 118 * static_cast<double>(result.peak_allocated) / top;
  const auto rounding = areas(frame, palette::color_of("rounding"));
  ASSERT_EQ(rounding.size(), 1u);
  EXPECT_NEAR(highest(rounding[0]), expected, 0.3);
  const double x = s.place().x(result.peak_time);
  EXPECT_TRUE(std::any_of(rounding[0].points.begin(), rounding[0].points.end(),
                          [&](Point p) { return std::abs(p.x - x) <= 1.5 && std::abs(p.y - expected) < 0.3; }));
  // Kind by kind, one upon the other.
  Bytes sum = 0;
  for (const Bytes bytes : result.peak_by_kind) sum += bytes;
  double stack = 1e9;
  for (int kind = 0; kind < kStorageKinds; ++kind)
    for (const Polyline& area : areas(frame, palette::color_of(to_string(static_cast<StorageKind>(kind)))))
      stack = std::min(stack, highest(area));
  EXPECT_NEAR(stack, 30 + 120 - 1 - 118 * static_cast<double>(sum) / top, 0.6);
}

TEST(OccupancyRow, StaysWithinItsPlaceHoweverNear) {
  Scene s = scene();
  for (int zoom = 0; zoom < 12; ++zoom) {
    for (const Item& item : s.draw().figure.items) {
      if (const auto* line = std::get_if<Polyline>(&item))
        for (const Point& p : line->points) {
          EXPECT_GE(p.x, 220 - 1e-6);
          EXPECT_LE(p.x, 820 + 1e-6);
          EXPECT_GE(p.y, 30);
          EXPECT_LE(p.y, 150);
        }
    }
    s.state.viewport.zoom(2.5, 333);
  }
}

TEST(OccupancyRow, SaysWhatIsUnderThePointer) {
  const Scene s = scene();
  const TierResult& result = s.run->result.tiers[0];
  Hit hit;
  hit.time = result.peak_time;
  hit_occupancy_row(s.place(), s.place().x(result.peak_time), 60, hit);
  const auto size = [](Bytes bytes) { return format_bytes(bytes); };
  EXPECT_NE(hit.text.find(size(result.peak_allocated) + " allocated of 80.0 GB"), std::string::npos) << hit.text;
  EXPECT_NE(hit.text.find("activation: " + size(result.peak_by_kind[4])), std::string::npos) << hit.text;
  EXPECT_NE(hit.text.find("added by rounding: "), std::string::npos) << hit.text;
  EXPECT_NE(hit.text.find("held by the allocator, not in use: "), std::string::npos) << hit.text;
}

TEST(OccupancyRow, WithoutHistoryItSaysSoAndStillDrawsWhatIsAllocated) {
  Scene s = scene();
  s.state.runs[0].history = nullptr;
  const CanvasFrame frame = s.draw();
  EXPECT_EQ(areas(frame, mixed(light_theme().background, light_theme().axis, 0.5)).size(), 1u) << "of all kinds";
  EXPECT_TRUE(areas(frame, palette::color_of("rounding")).empty()) << "nobody knows yet what that is";
  EXPECT_TRUE(areas(frame, palette::color_of("activation")).empty());
  EXPECT_TRUE(std::any_of(frame.figure.items.begin(), frame.figure.items.end(), [](const Item& item) {
    const auto* text = std::get_if<Text>(&item);
    return text && text->text == "by kind: being read";
  }));
}

TEST(OccupancyRow, OnTheDevicesClockItDrawsWhatHoldsData) {
  Scene s = scene();
  s.state.clock = MemoryClock::device;
  const auto says = [](const CanvasFrame& frame, const std::string& what) {
    return std::any_of(frame.figure.items.begin(), frame.figure.items.end(), [&](const Item& item) {
      const auto* text = std::get_if<Text>(&item);
      return text && text->text == what;
    });
  };
  EXPECT_TRUE(says(s.draw(), "by the device's clock: being worked out"));
  const OpenRun& run = s.state.runs[0];
  s.state.runs[0].device_history = ResidencyHistory::load_on_device(*run.source, device_residency(*s.run), {});
  const DevicePeak peak = device_peaks(*s.run)[0];
  const CanvasFrame frame = s.draw();
  EXPECT_TRUE(says(frame, "peak " + format_bytes(peak.bytes)));
  EXPECT_TRUE(areas(frame, palette::color_of("rounding")).empty()) << "rounding is on the allocator's clock";
  EXPECT_FALSE(areas(frame, palette::color_of("activation")).empty());
  Hit hit;
  hit.time = peak.time;
  hit_occupancy_row(s.place(), s.place().x(peak.time), 60, hit);
  EXPECT_NE(hit.text.find("by the device's clock: " + format_bytes(peak.bytes) + " hold data"), std::string::npos)
      << hit.text;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
