// Do the pictures of a recorded memory show every byte once, in its place, and stay small and legible?
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <sstream>

#include "tests/support/figure_checks.h"
#include "traces/figure/blocks_figure.h"
#include "traces/figure/memory_figure.h"
#include "traces/figure/palette.h"
#include "traces/figure/segment_map_figure.h"
#include "traces/figure/svg.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Time event(std::int64_t number) { return Time(number); }

std::size_t svg_size(const Figure& figure) {
  std::ostringstream out;
  write_svg(figure, out);
  return out.str().size();
}

// Random lives within [0, events), some from before, some to after the end.
std::vector<BlockLife> random_blocks(std::uint64_t seed, int count, std::int64_t events, Bytes most) {
  std::mt19937_64 random(seed);
  std::vector<BlockLife> blocks;
  for (int i = 0; i < count; ++i) {
    BlockLife block;
    block.begin = event(random() % 10 == 0 ? -1 : static_cast<std::int64_t>(random() % events));
    block.end =
        random() % 10 == 0 ? kNever : block.begin + Time(1 + static_cast<std::int64_t>(random() % (events / 4)));
    block.bytes = 1 + static_cast<Bytes>(random() % most);
    block.kind = static_cast<std::uint16_t>(random() % 2);
    blocks.push_back(block);
  }
  return blocks;
}

Bytes bytes_at(const std::vector<BlockLife>& blocks, Time at) {
  Bytes bytes = 0;
  for (const BlockLife& block : blocks)
    if (block.begin <= at && block.end > at) bytes += block.bytes;
  return bytes;
}

// The floor of a band in a column, or -1.
Bytes floor_at(const BlockBand& band, std::size_t column) {
  if (band.steps.empty() || column < band.steps.front().column || column >= band.end_column) return -1;
  Bytes floor = -1;
  for (const BlockBand::Step& step : band.steps)
    if (step.column <= column) floor = step.floor;
  return floor;
}

// In every column the bands lie on each other without gap or overlap, from 0 up, and with what is summed they make all
// bytes of that instant.
void expect_sound(const std::vector<BlockLife>& blocks, const BlockStack& stack) {
  ASSERT_EQ(stack.totals.size(), stack.columns.size());
  ASSERT_EQ(stack.summed.size(), stack.columns.size());
  for (std::size_t column = 0; column < stack.columns.size(); ++column) {
    std::vector<std::pair<Bytes, Bytes>> covered;
    for (const BlockBand& band : stack.bands)
      if (const Bytes floor = floor_at(band, column); floor >= 0)
        covered.emplace_back(floor, floor + blocks[band.block].bytes);
    std::sort(covered.begin(), covered.end());
    Bytes top = 0;
    for (const auto& [floor, ceiling] : covered) {
      ASSERT_EQ(floor, top) << "column " << column;
      top = ceiling;
    }
    ASSERT_GE(stack.summed[column], 0);
    ASSERT_EQ(top + stack.summed[column], stack.totals[column]) << "column " << column;
  }
}

// --- stacking

TEST(BlockStack, BandsNeverOverlapAndAddUp) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const std::vector<BlockLife> blocks = random_blocks(seed, 60, 400, 1'000'000);
    const BlockStack stack = stack_blocks(blocks, event(-1), event(400), {.width = 500, .least = 200'000});
    expect_sound(blocks, stack);
    EXPECT_EQ(stack.bands.size() + stack.summed_blocks + stack.unseen_blocks, blocks.size());
    for (const BlockBand& band : stack.bands) EXPECT_GE(blocks[band.block].bytes, 200'000);
    Bytes most = 0;
    for (std::int64_t at = -1; at <= 400; ++at) most = std::max(most, bytes_at(blocks, event(at)));
    EXPECT_EQ(stack.peak, most);
    EXPECT_EQ(bytes_at(blocks, stack.peak_at), most);
    EXPECT_EQ(most_at_once(blocks, event(-1), event(400)), most);
    EXPECT_EQ(*std::max_element(stack.totals.begin(), stack.totals.end()), most);  // no peak is lost to the columns
  }
}

TEST(BlockStack, EveryColumnShowsAnInstantThatWas) {
  const std::vector<BlockLife> blocks = random_blocks(7, 500, 10'000, 1000);
  const BlockStack stack = stack_blocks(blocks, event(-1), event(10'000), {.width = 100});
  expect_sound(blocks, stack);
  std::vector<Bytes> seen;
  for (std::int64_t at = -1; at < 10'000; ++at) seen.push_back(bytes_at(blocks, event(at)));
  std::sort(seen.begin(), seen.end());
  for (const Bytes total : stack.totals) EXPECT_TRUE(std::binary_search(seen.begin(), seen.end(), total)) << total;
}

TEST(BlockStack, ABandMovesDownWhenOneBelowItIsFreedAndNeverUp) {
  const std::vector<BlockLife> blocks = random_blocks(11, 80, 300, 1000);
  for (const BlockBand& band : stack_blocks(blocks, event(-1), event(300), {.width = 900}).bands)
    for (std::size_t i = 1; i < band.steps.size(); ++i) EXPECT_LT(band.steps[i].floor, band.steps[i - 1].floor);
  // The one that lives on lies below those that begin with it.
  const BlockStack stack = stack_blocks({{event(-1), event(5), 10}, {event(-1), kNever, 20}}, event(-1), event(10), {});
  ASSERT_EQ(stack.bands.size(), 2u);
  EXPECT_EQ(stack.bands[0].block, 1u);
  EXPECT_EQ(stack.bands[1].steps.size(), 1u);
  EXPECT_EQ(stack.bands[1].steps[0].floor, 20);
}

TEST(BlockStack, StaysWithinItsLimits) {
  // First in, first out: every free moves everything above it. And many that never move.
  std::vector<BlockLife> blocks;
  for (int i = 0; i < 20'000; ++i) blocks.push_back({event(i), event(i + 600), 1'000 + i % 100});
  for (int i = 0; i < 20'000; ++i) blocks.push_back({event(-1), kNever, 1'000 + i % 100});
  const BlockStackLimits limits{.width = 900, .least = 0, .most_bands = 1000, .most_steps = 5000};
  const BlockStack stack = stack_blocks(blocks, event(-1), event(20'000), limits);
  std::size_t steps = 0;
  for (const BlockBand& band : stack.bands) steps += band.steps.size();
  EXPECT_LE(stack.bands.size(), limits.most_bands);
  EXPECT_LE(steps, limits.most_steps);
  EXPECT_EQ(stack.bands.size() + stack.summed_blocks + stack.unseen_blocks, blocks.size());
  expect_sound(blocks, stack);
}

TEST(BlockStack, NothingAndOddLivesAreHarmless) {
  EXPECT_TRUE(stack_blocks({}, event(-1), event(0), {}).bands.empty());
  // Ended before the axis, begins after it, ends as it begins, empty axis.
  const std::vector<BlockLife> odd{{event(-5), event(-2), 10}, {event(50), kNever, 10}, {event(3), event(3), 10}};
  const BlockStack stack = stack_blocks(odd, event(-1), event(10), {});
  EXPECT_TRUE(stack.bands.empty());
  EXPECT_EQ(stack.unseen_blocks, 3u);
  EXPECT_EQ(stack_blocks({{event(0), kNever, 10}}, event(0), event(0), {}).peak, 10);
}

// --- the drawing of them

BlocksChart blocks_chart() {
  BlocksChart chart;
  chart.title = "Allocations over their lives";
  chart.subtitle = "of a test";
  chart.begin = event(-1);
  chart.end = event(1000);
  chart.kinds = {"parameter", "activation"};
  chart.sources = {"model.py:12 forward"};
  chart.phase_names = {"forward"};
  return chart;
}

double area_of(const Figure& figure, Color fill) {
  double area = 0;
  for (const Rectangle& r : all_of<Rectangle>(figure))
    if (r.fill == fill && r.height > 12) area += r.width * r.height;
  for (const Polyline& p : all_of<Polyline>(figure)) {
    if (p.fill != fill) continue;
    double twice = 0;  // the shoelace formula
    for (std::size_t i = 0; i < p.points.size(); ++i) {
      const Point a = p.points[i], b = p.points[(i + 1) % p.points.size()];
      twice += a.x * b.y - b.x * a.y;
    }
    area += std::abs(twice) / 2;
  }
  return area;
}

TEST(BlocksFigure, AnAreaIsBytesTimesLife) {
  BlocksChart chart = blocks_chart();
  // A parameter below, freed at 500; an activation of twice its bytes above it all the time: it moves down.
  chart.blocks = {{event(-1), event(500), 1'000'000, 0, 0, 0}, {event(0), kNever, 2'000'000, 0, 1, 0}};
  const Figure figure = draw_blocks(chart);
  double parameter = 0, activation = 0;
  for (const Rectangle& r : all_of<Rectangle>(figure)) {
    if (r.fill == palette::color_of("parameter") && r.height > 12) parameter += r.width * r.height;
  }
  for (const Polyline& p : all_of<Polyline>(figure))
    if (p.fill.opacity == 255 && p.fill != palette::kGray) activation += area_of(figure, p.fill);
  EXPECT_NEAR(activation / parameter, 2 * 1000.0 / 501, 0.01);
  EXPECT_TRUE(has_title(figure, "1.00 MB, parameter\nmodel.py:12 forward"));
  EXPECT_TRUE(has_title(figure, "lived already, freed at event 500"));
  EXPECT_TRUE(has_title(figure, "from event 0 to the end"));
  EXPECT_NE(text_with(all_of<Text>(figure), "peak 3.00 MB requested at event 0"), nullptr);
  expect_legible(figure);
}

TEST(BlocksFigure, SaysWhatIsSummedAndWhatIsTooShort) {
  BlocksChart chart = blocks_chart();
  chart.end = event(100'000);
  chart.blocks = {{event(-1), kNever, 1'000'000'000, 0, 0, 0}, {event(10), event(11), 1'000'000, 0, 1, 0}};
  for (int i = 0; i < 5; ++i) chart.blocks.push_back({event(-1), kNever, 500, 0, 1, 0});
  const Figure figure = draw_blocks(chart);
  const std::vector<Text> texts = all_of<Text>(figure);
  EXPECT_NE(text_with(texts, "6 smaller than"), nullptr);
  EXPECT_EQ(text_with(texts, "too short"), nullptr);  // the one short block makes the peak: its column shows it
  chart.blocks.push_back({event(12), event(13), 2'000'000, 0, 1, 0});
  EXPECT_NE(text_with(all_of<Text>(draw_blocks(chart)), "1 too short to be seen"), nullptr);
  expect_legible(figure);
}

TEST(BlocksFigure, AHundredThousandEventsMakeLessThanTwoMegabytes) {
  BlocksChart chart = blocks_chart();
  chart.end = event(100'000);
  chart.blocks = random_blocks(3, 50'000, 100'000, 100'000'000);
  EXPECT_LT(svg_size(draw_blocks(chart)), 2'000'000u);
  chart.blocks.clear();  // the worst: a queue, where every free moves all
  for (int i = 0; i < 50'000; ++i) chart.blocks.push_back({event(2 * i), event(2 * i + 1200), 20'000'000, 0, 1, 0});
  EXPECT_LT(svg_size(draw_blocks(chart)), 2'000'000u);
}

TEST(BlocksFigure, AnEmptyOneIsAFigureToo) {
  BlocksChart chart = blocks_chart();
  expect_legible(draw_blocks(chart));
  expect_legible(draw_blocks(BlocksChart{}));
}

// --- memory by kind, of a recording

TEST(MemoryFigureOfARecording, CountsEventsAndNamesItsPeak) {
  MemoryChart chart;
  chart.title = "GPU memory by kind of storage";
  chart.unit = InstantUnit::events;
  chart.begin = event(-1);
  chart.end = event(20'000);
  chart.layers = {{"parameter", {}}, {"pending", {}}};
  MemoryOutline reserved{"reserved", {}, {}};
  for (std::int64_t i = -1; i < 20'000; ++i) {
    chart.times.push_back(event(i));
    chart.layers[0].values.push_back(i == 1234 ? 9'000'000'000 : 6'000'000'000);
    chart.layers[1].values.push_back(i == 15'000 ? 4'000'000'000 : 0);
    reserved.times.push_back(event(i));
    reserved.values.push_back(11'000'000'000);
  }
  chart.outlines = {reserved};
  chart.peak = MemoryPeak{event(1234), 9'000'000'000, "allocated"};
  chart.marks = {{event(0), "step 1"}, {event(9000), "step 2"}};
  chart.phases = {{event(0), event(4000), "forward"}, {event(4000), event(9000), "backward"}};
  const Figure figure = draw_memory(chart);
  const std::vector<Text> texts = all_of<Text>(figure);
  const Text* peak = text_with(texts, "peak 9.00 GB allocated at event 1234");
  ASSERT_NE(peak, nullptr);
  // The label stands above the line of what is reserved, not on it.
  for (const Polyline& p : all_of<Polyline>(figure))
    if (p.fill == kNoColor && p.stroke == palette::kText) {
      EXPECT_LT(peak->at.y, p.points.front().y);
    }
  for (const char* part : {"events of the allocator", "step 2", "forward", "backward",
                           "10\xe2\x80\x89"
                           "000"})
    EXPECT_NE(text_with(texts, part), nullptr) << part;
  EXPECT_TRUE(has_title(figure, "pending: at most 4.00 GB"));
  expect_legible(figure);
}

TEST(PhaseStrip, ManyShortPhasesMakeFewShapes) {
  MemoryChart chart;
  chart.unit = InstantUnit::events;
  chart.end = event(100'000);
  chart.times = {event(0)};
  chart.layers = {{"parameter", {1000}}};
  for (int i = 0; i < 100'000; ++i) chart.phases.push_back({event(i), event(i + 1), i % 10 ? "forward" : "backward"});
  const Figure figure = draw_memory(chart);
  EXPECT_LT(figure.items.size(), 100u);  // mostly forward everywhere
  EXPECT_NE(text_with(all_of<Text>(figure), "forward"), nullptr);
  EXPECT_EQ(text_with(all_of<Text>(figure), "backward"), nullptr);
}

// --- segments

MapSegment segment(Address address, std::vector<MapBlock> blocks) { return {address, false, std::move(blocks)}; }
MapBlock used(Bytes size, std::uint16_t kind = 0) { return {size, size - 1, MapBlock::Use::in_use, kind, 0}; }
MapBlock hole(Bytes size) { return {size, 0, MapBlock::Use::free, 0, 0}; }

SegmentMapChart map_chart() {
  SegmentMapChart chart;
  chart.title = "Segments of the allocator after event 7";
  chart.subtitle = "of a test";
  chart.kinds = {"parameter", "activation"};
  chart.sources = {"model.py:12 forward"};
  return chart;
}

std::vector<MapGroup> random_groups(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<MapGroup> groups(1 + random() % 4);
  Address address = 1 << 20;
  for (MapGroup& group : groups) {
    group.name = "pool";
    for (std::uint64_t s = 0, count = random() % 40; s < count; ++s) {
      MapSegment one = segment(address, {});
      for (std::uint64_t b = 0, blocks = 1 + random() % 30; b < blocks; ++b) {
        MapBlock block = used(512 + static_cast<Bytes>(random() % (1 << (10 + random() % 15))));
        block.use = static_cast<MapBlock::Use>(random() % 3);
        one.blocks.push_back(block);
        address += static_cast<Address>(block.size);
      }
      group.segments.push_back(one);
    }
  }
  return groups;
}

TEST(SegmentMap, PiecesCoverTheirRowsWithoutOverlapAndToScale) {
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const std::vector<MapGroup> groups = random_groups(seed);
    const SegmentMapLimits limits;
    const SegmentMapLayout layout = lay_out_segments(groups, limits);
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::pair<double, double>>> rows;
    std::vector<double> drawn(groups.size(), 0), bytes(groups.size(), 0);
    for (const MapPiece& piece : layout.pieces) {
      rows[{piece.group, piece.row}].emplace_back(piece.x, piece.x + piece.width);
      drawn[piece.group] += piece.width * layout.bytes_per_point;
      ASSERT_LT(piece.row, layout.rows[piece.group]);
    }
    for (auto& [row, places] : rows) {
      std::sort(places.begin(), places.end());
      ASSERT_GE(places.front().first, 0);
      ASSERT_LE(places.back().second, limits.width + 1e-3);
      for (std::size_t i = 1; i < places.size(); ++i) ASSERT_GE(places[i].first, places[i - 1].second - 1e-6);
    }
    for (std::uint32_t g = 0; g < groups.size(); ++g) {
      for (std::uint32_t s = 0; s < groups[g].segments.size(); ++s) {
        const auto& left_out = layout.too_small[g];
        if (std::find(left_out.begin(), left_out.end(), s) != left_out.end()) continue;
        for (const MapBlock& block : groups[g].segments[s].blocks) bytes[g] += static_cast<double>(block.size);
      }
      EXPECT_NEAR(drawn[g], bytes[g], 1e-6 * bytes[g] + 1) << seed;
    }
    EXPECT_LE(layout.pieces.size(), limits.most_pieces + 1000);
  }
}

TEST(SegmentMap, EachPieceIsDrawnInTheColourOfWhatItHolds) {
  SegmentMapChart chart = map_chart();
  chart.groups = {{"Large blocks, default stream", {segment(4096, {used(3 << 20, 1), hole(1 << 20)})}}};
  const Figure figure = draw_segment_map(chart);
  double activation = 0, frame = 0;
  for (const Rectangle& r : all_of<Rectangle>(figure)) {
    if (r.height > 12 && r.fill == palette::color_of("activation")) activation += r.width;
    if (r.stroke == palette::kLimit) frame += r.width;
  }
  EXPECT_GT(activation, 0);
  EXPECT_NEAR(activation / frame, 3, 1e-9);  // the hole is marked, and a third as long
  const std::vector<Text> texts = all_of<Text>(figure);
  EXPECT_NE(text_with(texts, "1 segment, 4.19 MB: 3.15 MB in use, 1.05 MB free in 1 block"), nullptr);
  EXPECT_NE(text_with(texts, "1: 1.05 MB at 0x301000, in a segment of 4.19 MB, Large blocks"), nullptr);
  EXPECT_TRUE(has_title(figure, "3.15 MB activation"));
  EXPECT_TRUE(has_title(figure, "model.py:12 forward"));
  expect_legible(figure);
}

TEST(SegmentMap, PendingAndUnmappedAreDistinctFromFree) {
  SegmentMapChart chart = map_chart();
  MapSegment expandable = segment(1 << 21, {used(20 << 20),
                                            {20 << 20, 0, MapBlock::Use::pending, 0, 0},
                                            hole(20 << 20),
                                            {Bytes{180} << 30, 0, MapBlock::Use::unmapped, 0, 0}});
  expandable.expandable = true;
  chart.groups = {{"Private pool 1, large blocks, stream 3", {expandable}}};
  const Figure figure = draw_segment_map(chart);
  const std::vector<Text> texts = all_of<Text>(figure);
  EXPECT_NE(text_with(texts, "a stream may still use it 21.0 MB (zigzag)"), nullptr);
  EXPECT_NE(text_with(texts, "unmapped addresses 193 GB (dashes, not to scale)"), nullptr);
  EXPECT_NE(text_with(texts, "1 segment, 62.9 MB: 21.0 MB in use, 21.0 MB pending, 21.0 MB free in 1 block"), nullptr);
  EXPECT_TRUE(has_title(figure, "193 GB of addresses without memory"));
  std::size_t zigzags = 0;
  for (const Polyline& p : all_of<Polyline>(figure)) zigzags += p.fill == kNoColor && p.points.size() > 10;
  EXPECT_EQ(zigzags, 1u);
  expect_legible(figure);
}

TEST(SegmentMap, WhatIsNotDrawnIsCounted) {
  SegmentMapChart chart = map_chart();
  MapGroup group{"Large blocks, default stream", {segment(Address{1} << 40, {used(Bytes{80} << 30)})}};
  for (int i = 0; i < 7; ++i) group.segments.push_back(segment(Address{1} << 21 | Address(i) << 12, {used(4096)}));
  chart.groups = {group};
  const Figure figure = draw_segment_map(chart);
  EXPECT_NE(text_with(all_of<Text>(figure), "not drawn: 7 segments too small to be seen, 28.7 kB"), nullptr);
  expect_legible(figure);
}

TEST(SegmentMap, AHundredThousandBlocksMakeLessThanTwoMegabytes) {
  SegmentMapChart chart = map_chart();
  MapGroup group{"Large blocks, default stream", {}};
  for (Address s = 0; s < 5'000; ++s) {
    MapSegment one = segment(s << 24, {});
    for (int b = 0; b < 20; ++b) one.blocks.push_back(b % 2 ? hole(1 << 19) : used(1 << 19, b % 4 == 0));
    group.segments.push_back(one);
  }
  chart.groups = {group};
  const Figure figure = draw_segment_map(chart);
  EXPECT_LT(svg_size(figure), 2'000'000u);
  EXPECT_LT(figure.height, 2000);
  EXPECT_NE(text_with(all_of<Text>(figure), "Largest free blocks (framed), 5 of 50"), nullptr);
  expect_legible(figure);
}

TEST(SegmentMap, AnEmptyOneIsAFigureToo) {
  expect_legible(draw_segment_map(SegmentMapChart{}));
  SegmentMapChart chart = map_chart();
  chart.groups = {{"nothing", {}}, {std::string(400, 'm'), {segment(512, {used(512)})}}};
  expect_legible(draw_segment_map(chart));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
