// Is the lag of the second run where it belongs: its size on the axis, its sign above or below zero?
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "gui/drawing/row_drawing.h"
#include "tests/support/handmade_run.h"
#include "traces/figure/palette.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

constexpr double kLeft = 220, kTop = 40, kRowWidth = 1000, kRowHeight = 80;

memwall::Run kernels(const std::vector<double>& lengths) {
  HandmadeRun hand;
  double at = 0;
  OpId before = kNoOp;
  for (const double length : lengths) {
    before = hand.device(OpKind::kernel, "k", 0, 0, 0, at, at + length,
                         before == kNoOp ? WaitReason::launch : WaitReason::stream_order, before);
    at += length;
  }
  return hand.finish();
}

struct Scene {
  CanvasState state;
  Theme theme = light_theme();
  CanvasRow row{RowKind::difference, 1, 0, "difference", "", kRowHeight, false};

  Scene(memwall::Run first, memwall::Run second, bool compared = true) {
    for (memwall::Run* run : {&first, &second}) {
      OpenRun opened;
      opened.source = source_of(std::make_shared<const memwall::Run>(std::move(*run)));
      if (compared) opened.analysis = analyse(*opened.source, {});
      state.runs.push_back(std::move(opened));
    }
    if (compared) state.comparison = compare_runs(*state.runs[0].analysis, *state.runs[1].analysis);
    state.viewport = Viewport(state.whole(), kRowWidth);
  }
  RowPlace place() const { return {state, theme, row, kLeft, kTop, kRowWidth, kRowHeight}; }

  std::vector<Item> items() const {
    CanvasFrame frame;
    draw_difference_row(place(), frame);
    return frame.figure.items;
  }
  template <class T>
  std::vector<T> all() const {
    std::vector<T> found;
    for (const Item& item : items())
      if (const auto* shape = std::get_if<T>(&item)) found.push_back(*shape);
    return found;
  }
  Polyline curve() const { return all<Polyline>().back(); }
  double zero() const {
    for (const Line& line : all<Line>())
      if (line.stroke == theme.axis) return line.from.y;
    return NAN;
  }
  std::string text_at(double x) const {
    Hit hit;
    hit_difference_row(place(), x, kTop + 5, hit);
    return hit.text;
  }
};

// The second run is 2 us behind after the first kernel and 3 ahead after the second.
Scene behind_then_ahead() { return {kernels({10, 20, 10}), kernels({12, 15, 10})}; }

TEST(DifferenceRow, IsAboveZeroWhereTheSecondRunIsBehind) {
  const Scene scene = behind_then_ahead();
  const Polyline curve = scene.curve();
  ASSERT_EQ(curve.points.size(), 3u);
  EXPECT_NEAR(curve.points[0].x, kLeft + 250, 1e-6) << "the first kernel of the base ends at 10 of 40 us";
  EXPECT_NEAR(curve.points[2].x, kLeft + 1000, 1e-6);
  const double zero = scene.zero();
  EXPECT_LT(curve.points[0].y, zero);
  EXPECT_GT(curve.points[1].y, zero);
  EXPECT_NEAR((zero - curve.points[0].y) / (curve.points[1].y - zero), 2.0 / 3, 1e-9);
  for (const Point& point : curve.points) {
    EXPECT_GE(point.y, kTop);
    EXPECT_LE(point.y, kTop + kRowHeight);
  }
}

// Above is behind, below is ahead; red and blue mean other things on the canvas.
TEST(DifferenceRow, FillsEachSideInNoColourOfAWord) {
  const Scene scene = behind_then_ahead();
  const double zero = scene.zero();
  int sides = 0;
  for (const Polyline& area : scene.all<Polyline>()) {
    if (area.fill.opacity == 0) continue;
    ++sides;
    EXPECT_EQ(area.fill.red, light_theme().axis.red);
    const bool behind =
        std::any_of(area.points.begin(), area.points.end(), [&](const Point& point) { return point.y < zero - 1e-9; });
    double farthest = 0;
    for (const Point& point : area.points) {
      EXPECT_LE(behind ? point.y : zero, behind ? zero + 1e-9 : point.y + 1e-9) << "beyond its side";
      farthest = std::max(farthest, std::abs(point.y - zero));
    }
    const std::vector<Point>& curve = scene.curve().points;
    EXPECT_NEAR(farthest, std::abs(curve[behind ? 0 : 1].y - zero), 1e-9);
  }
  EXPECT_EQ(sides, 2);
  const Scene same(kernels({3, 4}), kernels({3, 4}));
  for (const Polyline& area : same.all<Polyline>()) EXPECT_EQ(area.fill.opacity, 0) << "there is no difference";
}

TEST(DifferenceRow, TheAxisIsInUnitsOfTime) {
  const Scene scene = behind_then_ahead();
  std::vector<std::string> ticks;
  for (const Text& text : scene.all<Text>()) ticks.push_back(text.text);
  EXPECT_NE(std::find(ticks.begin(), ticks.end(), "0"), ticks.end());
  EXPECT_NE(std::find(ticks.begin(), ticks.end(), "+2 \xc2\xb5s"), ticks.end()) << testing::PrintToString(ticks);
  EXPECT_NE(std::find(ticks.begin(), ticks.end(), "second run behind"), ticks.end());
  EXPECT_NE(std::find(ticks.begin(), ticks.end(), "second run ahead"), ticks.end());
}

TEST(DifferenceRow, ThePointerSaysHowFarBehind) {
  Scene scene = behind_then_ahead();
  EXPECT_EQ(scene.text_at(kLeft + 100), "difference: no work of both runs has ended yet");
  EXPECT_EQ(scene.text_at(kLeft + 300),
            "at 12.0 \xc2\xb5s the second run is 2.00 \xc2\xb5s behind, \xe2\x88\x92"
            "3.00 \xc2\xb5s in the visible range");
  EXPECT_TRUE(scene.text_at(kLeft + 1000).starts_with("at 40.0 \xc2\xb5s the second run is 3.00 \xc2\xb5s ahead, "));
  scene.state.viewport.show({microseconds(10), microseconds(20)});
  EXPECT_NE(scene.text_at(kLeft + 500).find("at 15.0 \xc2\xb5s the second run is 2.00 \xc2\xb5s behind, 0 in"),
            std::string::npos);
  Hit hit;
  hit_difference_row(scene.place(), kLeft + 1, kTop, hit);
  EXPECT_EQ(hit.op, std::optional(OpRef{0, 0, false})) << "the kernel that ends there";
}

TEST(DifferenceRow, RunsThroughTheEdgesOfWhatIsVisible) {
  Scene scene = behind_then_ahead();
  scene.state.viewport.show({microseconds(15), microseconds(25)});
  const Polyline curve = scene.curve();
  ASSERT_EQ(curve.points.size(), 2u);
  EXPECT_NEAR(curve.points.front().x, kLeft, 1e-6);
  EXPECT_NEAR(curve.points.back().x, kLeft + kRowWidth, 1e-6);
  // From 2 behind at 10 us to 3 ahead at 30: 0.75 behind at 15, 1.75 ahead at 25.
  const double zero = scene.zero();
  EXPECT_NEAR((zero - curve.points[0].y) / (curve.points[1].y - zero), 0.75 / 1.75, 1e-6);
}

TEST(DifferenceRow, KeepsExtremesZoomedOut) {
  std::vector<double> first(30'000, 1.0), second(30'000, 1.0);
  second[12'345] = 4001;  // 4 ms behind for one kernel only
  second[12'346] = 1;
  first[12'346] = 4001;
  const Scene scene(kernels(first), kernels(second));
  const Polyline curve = scene.curve();
  EXPECT_LE(curve.points.size(), 4002u);
  double highest = 1e9;
  for (const Point& point : curve.points) highest = std::min(highest, point.y);
  EXPECT_GT(scene.zero() - highest, kRowHeight / 2) << "the one that is behind is seen";
}

TEST(DifferenceRow, AShiftedRunHasALineWhereOpsStandBelowEachOther) {
  Scene scene = behind_then_ahead();
  const auto dashed = [&] {
    std::vector<double> ys;
    for (const Line& line : scene.all<Line>())
      if (line.dashed) ys.push_back(line.from.y);
    return ys;
  };
  EXPECT_TRUE(dashed().empty());
  scene.state.shift = microseconds(-2);  // the ends of the first kernel stand below each other
  ASSERT_EQ(dashed().size(), 1u);
  EXPECT_NEAR(dashed()[0], scene.curve().points[0].y, 1e-9);
  EXPECT_NEAR(scene.curve().points[0].x, kLeft + 250, 1e-6) << "the curve is of the first run's time";
  EXPECT_NE(scene.text_at(kLeft + 300).find("level with the first"), std::string::npos);
}

TEST(DifferenceRow, SaysWhatItWaitsFor) {
  const Scene waiting(kernels({1}), kernels({2}), false);
  ASSERT_EQ(waiting.items().size(), 1u);
  EXPECT_EQ(waiting.all<Text>()[0].text, "difference: being worked out");
  HandmadeRun none;
  none.host(OpKind::mark, "m", 0, 3);
  const Scene apart(none.finish(), kernels({2}));
  EXPECT_EQ(apart.all<Text>()[0].text, "difference: no work of one run stands in the other");
  EXPECT_EQ(apart.text_at(kLeft + 5), "difference: no work of one run stands in the other");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
