// Do figures show the numbers they are given, whole and legible?
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

#include "tests/support/figure_checks.h"
#include "traces/figure/axis.h"
#include "traces/figure/compare_figure.h"
#include "traces/figure/links_figure.h"
#include "traces/figure/memory_figure.h"
#include "traces/figure/palette.h"
#include "traces/figure/text_metrics.h"
#include "traces/figure/tiers_figure.h"
#include "traces/figure/timeline_figure.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// --- axes and texts

TEST(NiceTicks, AreFewAndRoundAndInside) {
  EXPECT_EQ(nice_ticks(0, 10, 6), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(nice_ticks(0, 1, 6).size(), 6u);
  std::mt19937_64 random(3);
  for (int i = 0; i < 2000; ++i) {
    const double range = std::ldexp(1 + static_cast<double>(random() % 1000), static_cast<int>(random() % 40) - 20);
    const double low = range * static_cast<double>(random() % 10'000) / 7, high = low + range;
    const int most = 2 + static_cast<int>(random() % 12);
    const std::vector<double> ticks = nice_ticks(low, high, most);
    EXPECT_LE(ticks.size(), static_cast<std::size_t>(most)) << low << " " << high << " " << most;
    const double step = nice_step(high - low, most - 1);
    const double digit = step / std::pow(10, std::floor(std::log10(step) + 1e-9));
    EXPECT_TRUE(std::abs(digit - 1) < 1e-6 || std::abs(digit - 2) < 1e-6 || std::abs(digit - 5) < 1e-6) << step;
    for (const double tick : ticks) {
      EXPECT_GE(tick, low - (high - low) * 1e-6);
      EXPECT_LE(tick, high + (high - low) * 1e-6);
    }
  }
}

TEST(NiceTicks, OfAnEmptyRangeAreHarmless) { EXPECT_LE(nice_ticks(5, 5, 5).size(), 1u); }

TEST(Numbers, AreShortAndHaveUnits) {
  EXPECT_EQ(format_time(from_seconds(0.347021)), "347 ms");
  EXPECT_EQ(format_time(microseconds(12)), "12.0 \xc2\xb5s");
  EXPECT_EQ(format_time(from_seconds(1.5)), "1.50 s");
  EXPECT_EQ(format_time(Duration{}), "0 s");
  EXPECT_EQ(format_bytes(39'343'900'000), "39.3 GB");
  EXPECT_EQ(format_bytes(Bytes{999'900'000}), "1.00 GB");
  EXPECT_EQ(format_rate(3.35e12), "3.35 TB/s");
  EXPECT_EQ(format_bytes(Bytes{512}), "512 B");
  EXPECT_EQ(format_tick(0.3, 0.1), "0.3");
  EXPECT_EQ(format_tick(12345, 5),
            "12\xe2\x80\x89"
            "345");
  EXPECT_EQ(format_tick(-1200, 100), "-1200");
}

TEST(TextMetrics, FitsOrSaysThatItDoesNot) {
  EXPECT_EQ(fit_text("kernel", 500, 10), "kernel");
  const std::string shortened = fit_text("a very long name of a kernel", 80, 10);
  EXPECT_LE(text_width(shortened, 10), 80);
  EXPECT_EQ(shortened.substr(shortened.size() - 3), "\xe2\x80\xa6");
  EXPECT_EQ(fit_text("a very long name", 5, 10), "");
  for (const std::string& line :
       wrap_text("checkpoint:mode=full, offload:what=optimizer,to=host, zero:stage=3", 150, 10))
    EXPECT_LE(text_width(line, 10), 150) << line;
  EXPECT_EQ(wrap_text("a b c", 1000, 10).size(), 1u);
  EXPECT_EQ(wrap_text("one two three four five six seven", 40, 10, false, 2).size(), 2u);
}

TEST(Palette, ColoursOfOneFigureDiffer) {
  for (const std::vector<const char*>& words :
       {std::vector<const char*>{"compute", "recompute", "copy", "collective", "storage", "allocator", "fault", "host",
                                 "idle"},
        {"parameter", "gradient", "optimizer_state", "activation", "input", "workspace", "communication_buffer",
         "unknown"},
        {"compute", "forward", "recompute", "backward", "optimizer", "copy", "collective", "storage", "host", "wait"}})
    for (std::size_t i = 0; i < words.size(); ++i)
      for (std::size_t k = i + 1; k < words.size(); ++k)
        EXPECT_NE(palette::color_of(words[i]), palette::color_of(words[k])) << words[i] << " " << words[k];
}

// --- timeline

Timeline timeline() {
  Timeline t;
  t.title = "a step";
  t.subtitle = "of a test";
  t.end = microseconds(1000);
  t.lanes = {{"main thread", true}, {"stream 7", false}};
  t.kinds = {"host", "forward", "backward"};
  return t;
}

TEST(TimelineFigure, ASpanIsAsWideAsItLasts) {
  Timeline t = timeline();
  t.spans = {{1, microseconds(0), microseconds(500), 1, "gemm"},
             {1, microseconds(500), microseconds(750), 2, "gemm_backward"}};
  const Figure figure = draw_timeline(t);
  std::map<std::uint8_t, double> width;  // by blue component, which differs
  for (const Rectangle& r : all_of<Rectangle>(figure))
    if (r.height > 20 && (r.fill == palette::color_of("forward") || r.fill == palette::color_of("backward")))
      width[r.fill.blue] += r.width;
  ASSERT_EQ(width.size(), 2u);
  EXPECT_NEAR(width[palette::color_of("forward").blue] / width[palette::color_of("backward").blue], 2, 1e-9);
  EXPECT_TRUE(has_title(figure, "gemm_backward"));
  EXPECT_NE(text_with(all_of<Text>(figure), "gemm"), nullptr);
  expect_legible(figure);
}

TEST(TimelineFigure, AMillionSpansMakeAFewThousandShapesThatCoverAsMuch) {
  Timeline t = timeline();
  for (int i = 0; i < 300'000; ++i)
    t.spans.push_back(
        {1, picoseconds(i * 3000), picoseconds(i * 3000 + 2900), static_cast<std::uint16_t>(i < 150'000 ? 1 : 2), "k"});
  const Figure figure = draw_timeline(t);
  EXPECT_LT(figure.items.size(), 12'000u);
  double covered = 0, lane = 0;
  for (const Rectangle& r : all_of<Rectangle>(figure)) {
    if (r.fill == palette::kBand && r.height > 20) lane = r.width;
    if (r.height > 20 && r.fill != palette::kBand) covered += r.width;
  }
  EXPECT_NEAR(covered / lane, 0.9, 0.01);
}

TEST(TimelineFigure, LongNamesAndManyMarksStayLegible) {
  Timeline t = timeline();
  t.title = std::string(300, 'm');
  t.lanes[1].name = "stream 20 with a name that no margin of a page could ever hold in full";
  for (int i = 0; i <= 100; ++i) t.marks.push_back({microseconds(i * 10), "step " + std::to_string(i)});
  const Figure figure = draw_timeline(t);
  expect_legible(figure);
  EXPECT_TRUE(has_title(figure, t.lanes[1].name));
  EXPECT_TRUE(has_title(figure, "step 57"));  // even where its label found no room
}

TEST(TimelineFigure, SpansBeyondTheWindowAreCut) {
  Timeline t = timeline();
  t.begin = microseconds(400);
  t.spans = {{1, microseconds(0), microseconds(2000), 1, "long"}, {1, microseconds(0), microseconds(100), 2, "before"}};
  const Figure figure = draw_timeline(t);
  double lane = 0, span = 0;
  for (const Rectangle& r : all_of<Rectangle>(figure)) {
    if (r.fill == palette::kBand && r.height > 20) lane = r.width;
    if (r.height > 20 && r.fill == palette::color_of("forward")) span = r.width;
  }
  EXPECT_DOUBLE_EQ(span, lane);
  EXPECT_FALSE(has_title(figure, "before"));
}

TEST(TimelineFigure, AnEmptyOneIsAFigureToo) { expect_legible(draw_timeline(Timeline{})); }

// --- memory

MemoryChart memory(Bytes capacity) {
  MemoryChart m;
  m.title = "memory of hbm";
  m.end = microseconds(100);
  m.capacity = capacity;
  m.layers = {{"parameter", {}}, {"activation", {}}};
  for (int i = 0; i < 100'000; ++i) {
    m.times.push_back(picoseconds(i * 1000));
    m.layers[0].values.push_back(2'000'000'000);
    m.layers[1].values.push_back(i == 77'777 ? 30'000'000'000 : 10'000'000'000);  // one instant of a nanosecond
  }
  return m;
}

double top_of(const Figure& figure, Color fill) {
  double top = figure.height;
  for (const Polyline& p : all_of<Polyline>(figure))
    if (p.fill == fill)
      for (const Point& point : p.points) top = std::min(top, point.y);
  return top;
}

double capacity_line(const Figure& figure) {
  for (const Line& l : all_of<Line>(figure))
    if (l.stroke == palette::kLimit && l.to.x - l.from.x > 400) return l.from.y;
  return -1;
}

TEST(MemoryFigure, APeakOfOneNanosecondIsSeenAndNamed) {
  const Figure figure = draw_memory(memory(32'000'000'000));
  EXPECT_NE(text_with(all_of<Text>(figure), "peak 32.0 GB at 77.8 \xc2\xb5s"), nullptr);
  // The peak of the stack is exactly the capacity here.
  EXPECT_NEAR(top_of(figure, palette::color_of("activation")), capacity_line(figure), 1e-6);
  EXPECT_LT(figure.items.size(), 200u);
  expect_legible(figure);
}

TEST(MemoryFigure, AnInstantDoesNotLastLongerThanItsColumn) {
  MemoryChart m = memory(0);
  m.times = {Time{}, microseconds(10), microseconds(10) + picoseconds(1), microseconds(90)};
  m.layers = {{"activation", {1000, 9000, 1000, 1000}}};
  double wide = 0;
  for (const Polyline& p : all_of<Polyline>(draw_memory(m)))
    if (p.fill == palette::color_of("activation")) {
      const double top =
          std::min_element(p.points.begin(), p.points.end(), [](Point a, Point b) { return a.y < b.y; })->y;
      double left = 1e9, right = 0;
      for (const Point& point : p.points)
        if (point.y == top) left = std::min(left, point.x), right = std::max(right, point.x);
      wide = right - left;
    }
  EXPECT_GT(wide, 0);
  EXPECT_LE(wide, 1);
}

TEST(MemoryFigure, ACapacityFarAboveIsToldNotDrawn) {
  const Figure figure = draw_memory(memory(2'000'000'000'000));
  EXPECT_LT(capacity_line(figure), 0);
  EXPECT_NE(text_with(all_of<Text>(figure), "capacity 2.00 TB (far above)"), nullptr);
  expect_legible(figure);
}

TEST(MemoryFigure, AnEmptyOneIsAFigureToo) { expect_legible(draw_memory(MemoryChart{})); }

// --- links

TEST(LinksFigure, MeansConserveBytes) {
  LinkChart link;
  std::mt19937_64 random(5);
  double bytes = 0;
  std::int64_t at = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t lasts = 1 + static_cast<std::int64_t>(random() % 1'000'000);
    link.times.push_back(picoseconds(at));
    link.rates.push_back(static_cast<double>(random() % 50) * 1e9);
    bytes += link.rates.back() * static_cast<double>(lasts) * 1e-12;
    at += lasts;
  }
  const std::vector<double> means = mean_rates(link, Time{}, picoseconds(at), 333);
  double carried = 0;
  for (const double mean : means) carried += mean * static_cast<double>(at) * 1e-12 / 333;
  EXPECT_NEAR(carried / bytes, 1, 1e-9);
}

TEST(LinksFigure, NamesEachLinkItsBandwidthAndNote) {
  LinksChart chart;
  chart.title = "links";
  chart.end = microseconds(100);
  for (const char* name : {"pcie_h2d", "pcie_d2h", "hbm"})
    chart.links.push_back({name, "1.2 GB, busy 40 % of the time", {Time{}, microseconds(50)}, {1e10, 0}, 5.5e10});
  const Figure figure = draw_links(chart);
  const std::vector<Text> texts = all_of<Text>(figure);
  for (const char* part : {"pcie_h2d", "pcie_d2h", "hbm", "1.2 GB", "55.0 GB/s"})
    EXPECT_NE(text_with(texts, part), nullptr) << part;
  expect_legible(figure);
  expect_legible(draw_links(LinksChart{}));
}

// --- tiers

TEST(TiersFigure, SaysWhatDoesNotFit) {
  TiersChart chart;
  chart.title = "tiers";
  chart.tiers = {{"hbm", 24'000'000'000, 1'000'000'000, {{"parameter", 9'000'000'000}, {"activation", 30'000'000'000}}},
                 {"host", 1'000'000'000'000, 0, {{"optimizer_state", 1'000'000}}}};
  chart.links = {{"pcie_h2d", 12'300'000'000, 0.455, 5.5e10}};
  const Figure figure = draw_tiers(chart);
  const std::vector<Text> texts = all_of<Text>(figure);
  EXPECT_NE(text_with(texts, "16.0 GB do not fit"), nullptr);
  EXPECT_NE(text_with(texts, "peak 39.0 GB of 23.0 GB (170 %)"), nullptr);
  EXPECT_NE(text_with(texts, "12.3 GB, 45.5 % of 55.0 GB/s"), nullptr);
  EXPECT_TRUE(has_title(figure, "optimizer_state: 1.00 MB"));
  expect_legible(figure);
  expect_legible(draw_tiers(TiersChart{}));
}

// --- comparison

TEST(CompareFigure, BarsShareAScaleAndSayTheDifference) {
  CompareChart chart;
  chart.title = "two runs";
  chart.panels = {{"step time",
                   Quantity::seconds,
                   {{"none", {{"compute", 0.2}}},
                    {"checkpoint:mode=full, offload:what=optimizer,to=host,buffers=4,prefetch=2",
                     {{"compute", 0.2}, {"recompute", 0.1}}}},
                   0,
                   ""},
                  {"memory",
                   Quantity::bytes,
                   {{"none", {{"activation", 8e10}}}, {"other", {{"activation", 2e10}}}},
                   4e10,
                   "capacity"}};
  chart.waterfalls = {
      {"step time", "none", "other", Quantity::seconds, 0.2, {{"compute", 0}, {"recompute", 0.15}, {"idle", -0.05}}}};
  const Figure figure = draw_comparison(chart);
  const std::vector<Text> texts = all_of<Text>(figure);
  EXPECT_NE(text_with(texts, "300 ms  (+50.0 %)"), nullptr);
  EXPECT_NE(text_with(texts, "20.0 GB  (-75.0 %)"), nullptr);
  EXPECT_NE(text_with(texts, "capacity 40.0 GB"), nullptr);
  EXPECT_NE(text_with(texts, "+150 ms"), nullptr);
  EXPECT_NE(text_with(texts,
                      "\xe2\x88\x92"
                      "50.0 ms"),
            nullptr);
  EXPECT_EQ(text_with(texts, "+0"), nullptr);  // parts that do not change are left out
  double compute = 0, recompute = 0;
  for (const Rectangle& r : all_of<Rectangle>(figure)) {
    if (r.height != 24) continue;
    if (compute == 0 && r.fill == palette::color_of("compute")) compute = r.width;
    if (recompute == 0 && r.fill == palette::color_of("recompute")) recompute = r.width;
  }
  EXPECT_NEAR(compute / recompute, 2, 1e-9);
  expect_legible(figure);
  expect_legible(draw_comparison(CompareChart{}));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
