// Does the strip show what every instant goes to, at any zoom, and does the pointer say it?
#include <gtest/gtest.h>

#include <cmath>

#include "gui/drawing/row_drawing.h"
#include "tests/support/handmade_run.h"
#include "tests/support/rank_program.h"
#include "tests/support/test_machine.h"
#include "traces/figure/palette.h"
#include "traces/run/run_recorder.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

constexpr double kLeft = 220, kTop = 40, kRowWidth = 1000, kRowHeight = 24;
constexpr double kStripY = kTop + 6, kPathY = kTop + kRowHeight - 4;

// A canvas of one or two runs with the row of the last.
struct Scene {
  CanvasState state;
  Theme theme = light_theme();
  CanvasRow row;

  explicit Scene(memwall::Run run, bool analysed = true) { add(std::move(run), analysed); }

  void add(memwall::Run run, bool analysed = true) {
    OpenRun opened;
    opened.source = source_of(std::make_shared<const memwall::Run>(std::move(run)));
    opened.spans = std::make_shared<SpanCache>(opened.source);
    if (analysed) opened.analysis = analyse(*opened.source, {});
    state.runs.push_back(std::move(opened));
    state.viewport = Viewport(state.whole(), kRowWidth);
    row.kind = RowKind::classes;
    row.run = static_cast<std::uint8_t>(state.runs.size() - 1);
  }
  RowPlace place() const { return {state, theme, row, kLeft, kTop, kRowWidth, kRowHeight}; }

  std::vector<Item> items() const {
    CanvasFrame frame;
    draw_classes_row(place(), frame);
    return frame.figure.items;
  }
  // Rectangles of the strip, or of the path below it.
  std::vector<Rectangle> rectangles(bool strip) const {
    std::vector<Rectangle> found;
    for (const Item& item : items())
      if (const auto* r = std::get_if<Rectangle>(&item))
        if ((r->y < kTop + kRowHeight / 2) == strip) found.push_back(*r);
    return found;
  }
  // Pixels of a colour.
  double pixels(bool strip, std::string_view word) const {
    double sum = 0;
    for (const Rectangle& r : rectangles(strip))
      if (r.fill == palette::color_of(word)) sum += r.width;
    return sum;
  }
  Hit hit(double x, double y) const {
    Hit found;
    found.time = state.viewport.time(x - kLeft) - place().shift();
    hit_classes_row(place(), x, y, found);
    return found;
  }
};

// 10 us: host for 1, a latency of 1, compute for 4, copy for 4.
memwall::Run four_parts() {
  HandmadeRun hand;
  const OpId kernel = hand.device(OpKind::kernel, "gemm", 0, 0, 1, 2, 6);
  hand.device(OpKind::copy, "offload", 1, 1, 1, 6, 10, WaitReason::event, kernel);
  return hand.finish();
}

// `count` kernels of 3 ns, each 1 ns after the one before.
memwall::Run many_kernels(int count) {
  HandmadeRun hand;
  OpId before = kNoOp;
  for (int i = 0; i < count; ++i) {
    const double at = 0.004 * i + 0.001;
    before = hand.device(OpKind::kernel, "k", 0, 0, 0, at, at + 0.003,
                         i == 0 ? WaitReason::launch : WaitReason::stream_order, before);
  }
  return hand.finish();
}

TEST(ClassesRow, GivesEachClassItsShareOfTheWidth) {
  const Scene scene(four_parts());
  EXPECT_NEAR(scene.pixels(true, "host"), 200, 1e-6);
  EXPECT_NEAR(scene.pixels(true, "compute"), 400, 1e-6);
  EXPECT_NEAR(scene.pixels(true, "copy"), 400, 1e-6);
  EXPECT_EQ(scene.rectangles(true).size(), 3u) << "call and latency are one stretch of host time";
  EXPECT_EQ(scene.rectangles(false).size(), 4u) << "and two segments of the path";
  for (const bool strip : {true, false})
    for (const Rectangle& r : scene.rectangles(strip)) {
      EXPECT_GE(r.y, kTop);
      EXPECT_LE(r.y + r.height, kTop + kRowHeight);
      EXPECT_GE(r.x, kLeft);
      EXPECT_LE(r.x + r.width, kLeft + kRowWidth + 1e-9);
    }
}

TEST(ClassesRow, ZoomedOutAPixelHasTheClassThatTakesMostOfIt) {
  Scene scene(many_kernels(20'000));
  EXPECT_NEAR(scene.pixels(true, "compute"), 1000, 1e-6);
  EXPECT_EQ(scene.rectangles(true).size(), 1u);
  EXPECT_LE(scene.rectangles(false).size(), 1001u);
  EXPECT_NEAR(scene.pixels(false, "compute"), 1000, 1e-6);
  // Near, kernels and gaps are told apart: 3 to 1.
  scene.state.viewport.show({microseconds(40), microseconds(40) + nanoseconds(400)});
  EXPECT_NEAR(scene.pixels(true, "compute"), 750, 5);
  EXPECT_NEAR(scene.pixels(true, "host"), 250, 5);
  EXPECT_NEAR(static_cast<double>(scene.rectangles(true).size()), 200, 3);
}

TEST(ClassesRow, CoversTheVisibleRangeWithoutHoles) {
  Scene scene(many_kernels(3'000));
  for (const std::int64_t length : {12'000'000, 3'000'000, 900'000, 100'000, 9'000}) {
    scene.state.viewport.show({Time(1'000'000), Time(1'000'000 + length)});
    double x = kLeft;
    for (const Rectangle& r : scene.rectangles(true)) {
      EXPECT_NEAR(r.x, x, 1e-6) << length;
      x = r.x + r.width;
    }
    EXPECT_NEAR(x, kLeft + kRowWidth, 1e-6) << length;
  }
}

TEST(ClassesRow, ThePointerNamesClassOpPartAndShare) {
  Scene scene(four_parts());
  const Hit strip = scene.hit(kLeft + 400, kStripY);
  EXPECT_EQ(strip.text,
            "compute for 4.00 \xc2\xb5s: work of gemm, 4.00 \xc2\xb5s\n"
            "compute: 4.00 \xc2\xb5s in the visible range, 40.0 % of it");
  ASSERT_TRUE(strip.op);
  EXPECT_EQ(*strip.op, (OpRef{0, 0, false}));
  const Hit call = scene.hit(kLeft + 50, kPathY);
  EXPECT_EQ(call.text,
            "critical path: host, call of gemm on the host, 1.00 \xc2\xb5s\n"
            "host: 2.00 \xc2\xb5s in the visible range, 20.0 % of it");
  EXPECT_EQ(call.op, std::optional(OpRef{0, 0, true}));
  EXPECT_TRUE(scene.hit(kLeft + 150, kPathY).text.starts_with("critical path: host, latency between gemm"));
  scene.state.viewport.show({microseconds(4), microseconds(8)});
  EXPECT_NE(scene.hit(kLeft + 900, kPathY).text.find("copy: 2.00 \xc2\xb5s in the visible range, 50.0 % of it"),
            std::string::npos);
}

TEST(ClassesRow, ThePointerSaysWhatAPixelOfManyHolds) {
  const Scene scene(many_kernels(20'000));
  const Hit hit = scene.hit(kLeft + 500, kStripY);  // 80 ns per pixel
  EXPECT_NE(hit.text.find("the 80.0 ns of this pixel: compute 75 %, host 25 %"), std::string::npos) << hit.text;
  EXPECT_FALSE(hit.op);
}

TEST(ClassesRow, TheSecondRunIsDrawnShifted) {
  Scene scene(four_parts());
  scene.add(four_parts());
  scene.state.shift = microseconds(3);
  EXPECT_NEAR(scene.rectangles(true).front().x, kLeft + 300, 1e-6);
  EXPECT_NEAR(scene.pixels(true, "compute"), 400, 1e-6) << "from 500 to 900";
  EXPECT_NEAR(scene.pixels(true, "copy"), 100, 1e-6) << "the rest is beyond the edge";
  EXPECT_TRUE(scene.hit(kLeft + 600, kStripY).text.starts_with("compute for")) << "3 us after its own time";
  EXPECT_EQ(scene.hit(kLeft + 600, kStripY).op, std::optional(OpRef{1, 0, false}));
  EXPECT_EQ(scene.hit(kLeft + 100, kStripY).text, "") << "before the run begins";
  scene.row.run = 0;
  EXPECT_NEAR(scene.rectangles(true).front().x, kLeft, 1e-6) << "the first is not";
}

TEST(ClassesRow, OfARankShowsOnlyItsPartOfThePath) {
  RankAuthor a(0), b(1);
  for (auto [author, time] : {std::pair(&a, 100), std::pair(&b, 400)}) {
    author->kernel(microseconds(time));
    author->order(0, 1);
    author->meet(7, microseconds(100));
  }
  Scene scene(simulate_and_record(joined(std::move(a), std::move(b)), test_machine(), {}));
  scene.row.index = 0;
  EXPECT_NEAR(scene.pixels(true, "compute"), 200, 1e-6);
  EXPECT_NEAR(scene.pixels(true, "collective"), 800, 1e-6) << "it waits for its peer";
  EXPECT_NEAR(scene.pixels(false, "compute"), 0, 1e-6) << "nobody waits for its kernel";
  scene.row.index = 1;
  EXPECT_GT(scene.pixels(false, "compute"), 798);
  scene.row.index = 2;
  EXPECT_TRUE(scene.rectangles(true).empty()) << "there is no such rank";
}

TEST(ClassesRow, SaysThatItIsBeingWorkedOut) {
  const Scene scene(four_parts(), false);
  const std::vector<Item> items = scene.items();
  ASSERT_EQ(items.size(), 1u);
  EXPECT_TRUE(std::get<Text>(items[0]).text.starts_with("A step takes "));
  const std::string text = scene.hit(kLeft + 5, kStripY).text;
  EXPECT_TRUE(text.starts_with("A step takes ")) << text;
  EXPECT_TRUE(text.ends_with(" The critical path is being worked out.")) << text;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
