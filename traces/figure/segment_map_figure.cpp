#include "traces/figure/segment_map_figure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <map>

#include "traces/figure/palette.h"
#include "traces/figure/plot.h"
#include "traces/figure/text_metrics.h"

namespace memwall {
namespace {

using namespace plot;
using Use = MapBlock::Use;

constexpr double kHeading = 18;
constexpr double kRowGap = 5, kTallRow = 18, kLowRow = 13;
constexpr std::size_t kFewRows = 20;  // up to these rows are tall
constexpr std::size_t kMostBorders = 3000;
constexpr Color kFree{0xf1, 0xf1, 0xf1};

std::string count_text(std::size_t count) { return format_tick(static_cast<double>(count), 1); }
std::string blocks_text(std::size_t count) { return count_text(count) + (count == 1 ? " block" : " blocks"); }

// Bytes by what they are used for.
struct Content {
  std::map<std::uint16_t, Bytes> in_use;  // by kind
  Bytes used = 0, pending = 0, free = 0, unmapped = 0;
  std::size_t free_blocks = 0;

  void add(const MapBlock& block) {
    if (block.use == Use::in_use) {
      in_use[block.kind] += block.size;
      used += block.size;
    }
    if (block.use == Use::pending) pending += block.size;
    if (block.use == Use::unmapped) unmapped += block.size;
    if (block.use == Use::free) {
      free += block.size;
      ++free_blocks;
    }
  }
  Bytes mapped() const { return used + pending + free; }
};

Content content_of(const MapSegment& segment) {
  Content content;
  for (const MapBlock& block : segment.blocks) content.add(block);
  return content;
}

// One free block, by place.
struct Hole {
  std::uint32_t group = 0, segment = 0, block = 0;
  Bytes size = 0;
  Address address = 0;
};

class SegmentMapDrawing {
 public:
  explicit SegmentMapDrawing(const SegmentMapChart& chart)
      : chart_(chart), layout_(lay_out_segments(chart.groups, {.width = kFigureWidth - 2 * kMargin})) {
    find_holes();
    std::size_t rows = 0;
    for (const std::uint32_t count : layout_.rows) rows += count;
    row_height_ = rows <= kFewRows ? kTallRow : kLowRow;
  }

  Figure draw() {
    figure_.width = kFigureWidth;
    figure_.title = chart_.title;
    double y = draw_title(figure_, chart_.title, chart_.subtitle);
    y = draw_legend(figure_, kMargin, y, kFigureWidth - kMargin, legend());
    y = draw_scale(y);
    for (std::uint32_t group = 0; group < chart_.groups.size(); ++group) {
      tops_.push_back(draw_heading(group, y));
      y = tops_.back() + layout_.rows[group] * (row_height_ + kRowGap) + 6;
    }
    for (const MapPiece& piece : layout_.pieces) draw_piece(piece);
    for (const MapSlice& slice : layout_.slices) draw_slice(slice);
    for (std::size_t number = 0; number < holes_.size(); ++number) mark_hole(number);
    figure_.height = list_holes(y) + kMargin;
    return std::move(figure_);
  }

 private:
  const MapSegment& segment(std::uint32_t group, std::uint32_t number) const {
    return chart_.groups[group].segments[number];
  }
  double top(std::uint32_t group, std::uint32_t row) const { return tops_[group] + row * (row_height_ + kRowGap); }

  void find_holes() {
    for (std::uint32_t g = 0; g < chart_.groups.size(); ++g)
      for (std::uint32_t s = 0; s < chart_.groups[g].segments.size(); ++s) {
        Address address = segment(g, s).address;
        const std::vector<MapBlock>& blocks = segment(g, s).blocks;
        for (std::uint32_t b = 0; b < blocks.size(); ++b) {
          if (blocks[b].use == Use::free) holes_.push_back({g, s, b, blocks[b].size, address});
          address += static_cast<Address>(blocks[b].size);
        }
      }
    std::sort(holes_.begin(), holes_.end(),
              [](const Hole& a, const Hole& b) { return a.size != b.size ? a.size > b.size : a.address < b.address; });
    all_holes_ = holes_.size();
    if (holes_.size() > chart_.most_holes) holes_.resize(chart_.most_holes);
  }

  std::vector<LegendEntry> legend() const {
    Content all;
    for (const MapGroup& group : chart_.groups)
      for (const MapSegment& each : group.segments)
        for (const MapBlock& block : each.blocks) all.add(block);
    std::vector<LegendEntry> entries;
    for (const auto& [kind, bytes] : all.in_use)
      entries.push_back(
          {fmt::format("{} {}", chart_.kinds[kind], format_bytes(bytes)), palette::color_of(chart_.kinds[kind])});
    if (all.pending > 0)
      entries.push_back(
          {fmt::format("freed, a stream may still use it {} (zigzag)", format_bytes(all.pending)), palette::kGray});
    if (all.free > 0)
      entries.push_back({fmt::format("free {} in {}", format_bytes(all.free), blocks_text(all.free_blocks)), kFree});
    if (all.unmapped > 0)
      entries.push_back({fmt::format("unmapped addresses {} (dashes{})", format_bytes(all.unmapped),
                                     layout_.cut_unmapped ? ", not to scale" : ""),
                         palette::kLightGray, LegendMark::dashes});
    return entries;
  }

  // "0 bytes to the left": how long a megabyte is.
  double draw_scale(double y) {
    if (layout_.slices.empty()) return y;
    const double bytes = nice_step(layout_.bytes_per_point * 160, 1), length = bytes / layout_.bytes_per_point;
    const double left = kMargin, middle = y + 5;
    figure_.add(Line{{left, middle}, {left + length, middle}, palette::kText, 1});
    for (const double x : {left, left + length}) figure_.add(Line{{x, middle - 3}, {x, middle + 3}, palette::kText, 1});
    figure_.add(Text{{left + length + 8, middle + 3.5},
                     format_bytes(bytes) + "; a row that is full goes on in the next",
                     kSmallSize,
                     Anchor::start,
                     palette::kFaintText});
    return y + 20;
  }

  // Returns the y below it.
  double draw_heading(std::uint32_t number, double y) {
    const MapGroup& group = chart_.groups[number];
    Content all;
    for (const MapSegment& each : group.segments)
      for (const MapBlock& block : each.blocks) all.add(block);
    std::string text =
        fmt::format("\xe2\x80\x93 {} segment{}, {}: {} in use, ", count_text(group.segments.size()),
                    group.segments.size() == 1 ? "" : "s", format_bytes(all.mapped()), format_bytes(all.used));
    if (all.pending > 0) text += format_bytes(all.pending) + " pending, ";
    text += all.free == 0 ? "none free"
                          : fmt::format("{} free in {}", format_bytes(all.free), blocks_text(all.free_blocks));
    text += not_drawn(number);
    const double width = 1.04 * text_width(group.name, kLabelSize, true) + 4;  // some fonts are wider
    const double room = kFigureWidth - 2 * kMargin - width;
    figure_.add(GroupBegin{group.name + " " + text});
    figure_.add(Text{{kMargin, y + 12},
                     fit_text(group.name, kFigureWidth - 2 * kMargin, kLabelSize, true),
                     kLabelSize,
                     Anchor::start,
                     palette::kText,
                     true});
    const std::string fitting = room > 0 ? fit_text(text, room, kLabelSize) : "";
    if (!fitting.empty())
      figure_.add(Text{{kMargin + width, y + 12}, fitting, kLabelSize, Anchor::start, palette::kFaintText});
    figure_.add(GroupEnd{});
    return y + kHeading;
  }

  std::string not_drawn(std::uint32_t group) const {
    const std::vector<std::uint32_t>& numbers = layout_.too_small[group];
    if (numbers.empty()) return "";
    Bytes bytes = 0;
    for (const std::uint32_t number : numbers) bytes += content_of(segment(group, number)).mapped();
    return fmt::format("; not drawn: {} segments too small to be seen, {}", count_text(numbers.size()),
                       format_bytes(bytes));
  }

  std::string story_of(const MapPiece& piece) const {
    const MapSegment& of = segment(piece.group, piece.segment);
    if (piece.last - piece.first > 1) {
      Content content;
      for (std::uint32_t i = piece.first; i < piece.last; ++i) content.add(of.blocks[i]);
      return fmt::format("{}: {} in use, {} pending, {} free", blocks_text(piece.last - piece.first),
                         format_bytes(content.used), format_bytes(content.pending), format_bytes(content.free));
    }
    const MapBlock& block = of.blocks[piece.first];
    switch (block.use) {
      case Use::free:
        return format_bytes(block.size) + " free";
      case Use::unmapped:
        return format_bytes(block.size) + " of addresses without memory";
      case Use::pending:
        return format_bytes(block.size) + " freed, a stream may still use it";
      case Use::in_use:
        break;
    }
    return fmt::format("{} {}{}\n{}", format_bytes(block.size), chart_.kinds[block.kind],
                       block.requested == block.size ? "" : ", " + format_bytes(block.requested) + " of them requested",
                       chart_.sources[block.source]);
  }

  // What most of a piece is.
  const MapBlock& main_block(const MapPiece& piece) const {
    const std::vector<MapBlock>& blocks = segment(piece.group, piece.segment).blocks;
    std::map<std::pair<Use, std::uint16_t>, Bytes> sizes;
    const auto key = [](const MapBlock& b) {
      return std::pair{b.use, b.use == Use::in_use ? b.kind : std::uint16_t{0}};
    };
    const MapBlock* most = &blocks[piece.first];
    for (std::uint32_t i = piece.first; i < piece.last; ++i) {
      sizes[key(blocks[i])] += blocks[i].size;
      if (sizes[key(blocks[i])] > sizes[key(*most)]) most = &blocks[i];
    }
    return *most;
  }

  void draw_piece(const MapPiece& piece) {
    const MapBlock& block = main_block(piece);
    const double x = kMargin + piece.x, y = top(piece.group, piece.row);
    const bool wide = piece.width > 2.5;
    figure_.add(GroupBegin{story_of(piece)});
    switch (block.use) {
      case Use::in_use:
        figure_.add(Rectangle{x, y, piece.width, row_height_, palette::color_of(chart_.kinds[block.kind]),
                              wide ? palette::kBackground : kNoColor});
        break;
      case Use::free:
        figure_.add(Rectangle{x, y, piece.width, row_height_, kFree, wide ? palette::kLightGray : kNoColor});
        break;
      case Use::pending:
        figure_.add(Rectangle{x, y, piece.width, row_height_, wide ? palette::kBackground : palette::kGray});
        if (wide) draw_zigzag(x, y, piece.width);
        break;
      case Use::unmapped:
        figure_.add(Rectangle{x, y, piece.width, row_height_, palette::kBackground});
        figure_.add(Line{{x, y + row_height_ / 2}, {x + piece.width, y + row_height_ / 2}, palette::kGray, 1, true});
        break;
    }
    figure_.add(GroupEnd{});
  }

  void draw_zigzag(double x, double y, double width) {
    std::vector<Point> points;
    const double step = std::max(3.0, width / 200);  // however wide, a few hundred corners
    bool up = false;
    for (double at = 0; at < width; at += step, up = !up) points.push_back({x + at, up ? y : y + row_height_});
    points.push_back({x + width, up ? y : y + row_height_});
    figure_.add(Polyline{std::move(points), palette::kGray, 1});
  }

  void draw_slice(const MapSlice& slice) {
    // A border would hide what is in it; and thousands of borders would show nothing.
    if (slice.width < 3 || layout_.slices.size() > kMostBorders) return;
    const double x = kMargin + slice.x, y = top(slice.group, slice.row), end = x + slice.width;
    if (slice.begins && slice.ends) {
      figure_.add(Rectangle{x, y, slice.width, row_height_, kNoColor, palette::kAxis});
      return;
    }
    figure_.add(Line{{x, y}, {end, y}, palette::kAxis, 0.75});
    figure_.add(Line{{x, y + row_height_}, {end, y + row_height_}, palette::kAxis, 0.75});
    if (slice.begins) figure_.add(Line{{x, y}, {x, y + row_height_}, palette::kAxis, 0.75});
    if (slice.ends) figure_.add(Line{{end, y}, {end, y + row_height_}, palette::kAxis, 0.75});
  }

  // A frame, and the hole's number where there is room.
  void mark_hole(std::size_t number) {
    const Hole& hole = holes_[number];
    bool named = false;
    for (const MapPiece& piece : layout_.pieces) {
      if (piece.group != hole.group || piece.segment != hole.segment) continue;
      if (piece.first > hole.block || piece.last <= hole.block) continue;
      const double x = kMargin + piece.x, y = top(piece.group, piece.row);
      figure_.add(Rectangle{x, y - 1.5, piece.width, row_height_ + 3, kNoColor, palette::kLimit});
      const std::string text = std::to_string(number + 1);
      if (named || text_width(text, kSmallSize, true) + 3 > piece.width) continue;
      figure_.add(Text{
          {x + piece.width / 2, y + row_height_ / 2 + 3.5}, text, kSmallSize, Anchor::middle, palette::kLimit, true});
      named = true;
    }
  }

  double list_holes(double y) {
    if (holes_.empty()) return y;
    const std::string heading =
        fmt::format("Largest free blocks (framed){}",
                    all_holes_ > holes_.size() ? fmt::format(", {} of {}", holes_.size(), count_text(all_holes_)) : "");
    figure_.add(Text{{kMargin, y + 12}, heading, kLabelSize, Anchor::start, palette::kText, true});
    y += kHeading;
    for (std::size_t i = 0; i < holes_.size(); ++i) {
      const Hole& hole = holes_[i];
      const MapSegment& of = segment(hole.group, hole.segment);
      const std::string text = fmt::format(
          "{}: {} at {:#x}, {}, {}", i + 1, format_bytes(hole.size), hole.address,
          of.blocks.size() == 1 ? "a whole segment" : "in a segment of " + format_bytes(content_of(of).mapped()),
          chart_.groups[hole.group].name);
      figure_.add(Text{{kMargin, y + 10},
                       fit_text(text, kFigureWidth - 2 * kMargin, kSmallSize),
                       kSmallSize,
                       Anchor::start,
                       palette::kText},
                  text);
      y += 14;
    }
    return y;
  }

  const SegmentMapChart& chart_;
  SegmentMapLayout layout_;
  Figure figure_;
  double row_height_ = kLowRow;
  std::vector<double> tops_;  // of the rows of each group
  std::vector<Hole> holes_;   // the largest
  std::size_t all_holes_ = 0;
};

}  // namespace

Figure draw_segment_map(const SegmentMapChart& chart) { return SegmentMapDrawing(chart).draw(); }

}  // namespace memwall
