// Does every figure of runs look as it was looked at, painted with Qt; and is the painting that of our own SVG?
#include <gtest/gtest.h>
#include <QPainter>
#include <QSvgRenderer>

#include <chrono>
#include <sstream>

#include "gui/drawing/run_figures.h"
#include "gui/paint/figure_painter.h"
#include "tests/gui/support/image_check.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/handmade_run.h"
#include "tests/support/test_machine.h"
#include "traces/figure/dark_figure.h"
#include "traces/figure/svg.h"
#include "traces/run/run_recorder.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

using std::chrono::microseconds;

// Three steps of a small GPT whose kernels last longer than their launches.
memwall::Run gpt_run() {
  GptShape shape;
  shape.layers = 3;
  shape.steps = 3;
  shape.flops_per_second = 1e9;
  shape.launch_cost = microseconds(2);
  RunSettings settings;
  settings.allocator = "ideal";  // which reserves no more than it needs: kilobytes would vanish in a segment
  return simulate_and_record(gpt_step(shape), test_machine(), settings);
}

// Copies over two links, in steps of full and half the bandwidth.
memwall::Run copying_run() {
  HandmadeRun made;
  for (int i = 0; i < 6; ++i) made.device(OpKind::kernel, "kernel", 0, 15 * i, 15 * i + 2, 15 * i + 4, 15 * i + 13);
  made.host(OpKind::host_work, "rest", 90, 100);
  made.step("warm-up", 0, 2);
  made.step("step", 3, 6);
  memwall::Run run = made.finish();
  for (std::size_t link = 0; link < 2; ++link) {
    const double bandwidth = run.machine.links[link].bandwidth;
    for (int i = 0; i < 5; ++i) {
      const double at = 20.0 * i + 7.0 * static_cast<double>(link);
      run.link_rates[link].push_back({from_microseconds(at), bandwidth / (1 + i % 2)});
      run.link_rates[link].push_back({from_microseconds(at + 8), 0});
    }
    run.result.links[link].bytes = static_cast<Bytes>(bandwidth * 32e-6);
  }
  return run;
}

QImage svg_image(const Figure& figure) {
  std::ostringstream text;
  write_svg(figure, text);
  QSvgRenderer renderer(QByteArray::fromStdString(text.str()));
  EXPECT_TRUE(renderer.isValid());
  QImage image = image_of(Figure{figure.width, figure.height, "", {}}, 1);
  QPainter painter(&image);
  painter.setRenderHint(QPainter::Antialiasing);
  renderer.render(&painter, QRectF(0, 0, image.width(), image.height()));
  return image;
}

// Qt's SVG library places texts by whole pixels of the font, so letters shift by a fraction of one.
constexpr double kOfTexts = 0.004;

void expect_figure(const memwall::Run& run, const std::string& view, const std::string& name,
                   std::optional<TimeRange> range = {}) {
  const Figure figure = run_figure({&run}, {name}, {.view = view, .tier = "hbm", .range = range, .lanes = {}});
  const QImage image = image_of(figure, 1);
  expect_image(image, "figure_" + name);
  expect_same_picture(image, svg_image(figure), "figure_" + name + "_and_svg", kOfTexts);
}

TEST(FigureImage, Timeline) { expect_figure(gpt_run(), "timeline", "timeline"); }
TEST(FigureImage, Memory) { expect_figure(gpt_run(), "memory", "memory"); }
TEST(FigureImage, Links) { expect_figure(copying_run(), "links", "links"); }
TEST(FigureImage, Tiers) { expect_figure(gpt_run(), "tiers", "tiers"); }

TEST(FigureImage, PartsOfARun) {
  const memwall::Run run = gpt_run(), copies = copying_run();
  expect_figure(run, "timeline", "timeline_step", parse_range("step:2", run));
  expect_figure(run, "memory", "memory_step", parse_range("step:2", run));
  expect_figure(copies, "links", "links_range", parse_range("25us:50us", copies));
}

// For a dark page: as SVG and painted, without a white box and without black text on it.
TEST(FigureImage, OnADarkPage) {
  const memwall::Run run = gpt_run();
  for (const char* view : {"timeline", "memory", "tiers"}) {
    const Figure figure =
        dark_figure(run_figure({&run}, {view}, {.view = view, .tier = "hbm", .range = {}, .lanes = {}}));
    const QImage image = image_of(figure, 1);
    expect_image(image, std::string("figure_") + view + "_dark");
    expect_same_picture(image, svg_image(figure), std::string("figure_") + view + "_dark_and_svg", kOfTexts);
  }
}

TEST(FigureImage, Comparison) {
  const memwall::Run run = gpt_run(), other = copying_run();
  const Figure figure =
      run_figure({&run, &other}, {"gpt", "hand"}, {.view = "compare", .tier = "hbm", .range = {}, .lanes = {}});
  expect_image(image_of(figure, 1), "figure_compare");
  expect_same_picture(image_of(figure, 1), svg_image(figure), "figure_compare_and_svg", kOfTexts);
}

// The measure itself: a word, a colour and a shape that differ are seen; a shade at an edge is not.
TEST(ImageCheck, SeesWhatAPersonWouldSee) {
  Figure figure{400, 200, "", {}};
  figure.add(Rectangle{20, 20, 60, 30, {0, 114, 178}});
  figure.add(Text{{20, 100}, "peak 12.3 GB", 11, Anchor::start, {34, 34, 34}});
  const auto share = [&](const Figure& other) {
    return difference_of(image_of(figure, 1), image_of(other, 1)).clearly * 400 * 200;
  };
  EXPECT_EQ(share(figure), 0);
  Figure shifted = figure;
  std::get<Rectangle>(shifted.items[0]).x += 0.4;
  std::get<Text>(shifted.items[1]).at.x += 0.3;
  EXPECT_EQ(share(shifted), 0);
  Figure word = figure;
  std::get<Text>(word.items[1]).text = "peak 45.6 GB";
  EXPECT_GT(share(word), 0.0001 * 400 * 200);
  Figure color = figure;
  std::get<Rectangle>(color.items[0]).fill = {0, 158, 115};
  EXPECT_GT(share(color), 1000);
  Figure moved = figure;
  std::get<Rectangle>(moved.items[0]).x += 3;
  EXPECT_GT(share(moved), 60);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
