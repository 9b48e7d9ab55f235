#include "traces/figure/segment_map_layout.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>

namespace memwall {
namespace {

constexpr double kSegmentGap = 4;       // points between segments of a row; less between narrow ones
constexpr double kLeastSegment = 0.75;  // a narrower one is not drawn
constexpr double kMostUnmapped = 40;    // an unmapped range is never wider
constexpr double kUnwrappedRows = 12;   // rows enough
constexpr double kLeastBlock = 8;       // points: the mean width of few blocks
constexpr double kGoodBlock = 40;       // the mean width of blocks where a segment goes over several rows
constexpr double kWrappedRows = 28;     // but never more rows than these

double mapped_bytes(const MapSegment& segment) {
  double bytes = 0;
  for (const MapBlock& block : segment.blocks)
    if (block.use != MapBlock::Use::unmapped) bytes += static_cast<double>(block.size);
  return bytes;
}

// A scale at which the largest segment fills a row, and so do four of a quarter of its size with the gaps between them,
// if that gives rows enough or its blocks are few; else one at which that segment goes over several rows.
double natural_scale(const std::vector<MapGroup>& groups, double width) {
  double total = 0, largest = 0;
  std::size_t blocks = 0;  // of the largest
  for (const MapGroup& group : groups)
    for (const MapSegment& segment : group.segments) {
      const double bytes = mapped_bytes(segment);
      total += bytes;
      if (bytes > largest) largest = bytes, blocks = segment.blocks.size();
    }
  const double unwrapped = largest / (width - 3 * kSegmentGap);
  if (unwrapped <= total / (kUnwrappedRows * width) || static_cast<double>(blocks) * kLeastBlock <= width)
    return unwrapped;
  const double rows = std::clamp(static_cast<double>(blocks) * kGoodBlock / width, 2.0, kWrappedRows);
  return total / (rows * width);
}

class Layout {
 public:
  Layout(const std::vector<MapGroup>& groups, const SegmentMapLimits& limits) : groups_(groups), limits_(limits) {
    for (const MapGroup& group : groups) {
      std::vector<double> bytes;
      for (const MapSegment& segment : group.segments) bytes.push_back(mapped_bytes(segment));
      std::vector<std::uint32_t> order(group.segments.size());
      std::iota(order.begin(), order.end(), 0u);
      std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
        return bytes[a] != bytes[b] ? bytes[a] > bytes[b] : group.segments[a].address < group.segments[b].address;
      });
      orders_.push_back(std::move(order));
    }
  }

  SegmentMapLayout make() {
    double total = 0;
    for (const MapGroup& group : groups_)
      for (const MapSegment& segment : group.segments) total += mapped_bytes(segment);
    const double finest = total / (static_cast<double>(limits_.most_rows) * limits_.width);
    double scale = std::max({natural_scale(groups_, limits_.width), finest, 1e-3});
    // Segments side by side leave gaps, and every group begins a row: coarser until the rows are few enough. Groups
    // without number cannot be helped by that.
    const std::size_t most = std::max(limits_.most_rows, 2 * groups_.size());
    for (place(scale); row_count() > most && scale < 1e18; place(scale *= 1.15)) {
    }
    for (double visible = 0.6; !divide(visible); visible *= 2) {
    }
    return std::move(layout_);
  }

 private:
  std::size_t row_count() const { return std::accumulate(layout_.rows.begin(), layout_.rows.end(), std::size_t{0}); }

  double width_of(const MapBlock& block) const {
    const double width = static_cast<double>(block.size) / layout_.bytes_per_point;
    return block.use == MapBlock::Use::unmapped ? std::min(width, kMostUnmapped) : width;
  }
  double width_of(const MapSegment& segment) const {
    double width = 0;
    for (const MapBlock& block : segment.blocks) width += width_of(block);
    return width;
  }

  void place(double bytes_per_point) {
    layout_ = {};
    layout_.bytes_per_point = bytes_per_point;
    layout_.too_small.resize(groups_.size());
    for (std::uint32_t group = 0; group < groups_.size(); ++group) place_group(group);
  }

  void place_group(std::uint32_t group) {
    std::uint32_t row = 0;
    double x = 0;
    for (const std::uint32_t segment : orders_[group]) {
      double left = width_of(groups_[group].segments[segment]);
      if (left < kLeastSegment) {
        layout_.too_small[group].push_back(segment);
        continue;
      }
      if (x > 0 && x + left > limits_.width + 1e-6) ++row, x = 0;
      for (bool begins = true; left > 0; begins = false) {
        // A remainder of rounding is no row of its own.
        const double width = left > limits_.width + 1e-6 ? limits_.width : std::min(left, limits_.width);
        const bool ends = left <= limits_.width + 1e-6;
        layout_.slices.push_back({group, segment, row, x, width, begins, ends});
        left = ends ? 0 : left - width;
        if (ends)
          x += width + std::clamp(width, 1.0, kSegmentGap);
        else
          ++row, x = 0;
      }
    }
    layout_.rows.push_back(x > 0 ? row + 1 : row);
  }

  // False where that makes too many pieces.
  bool divide(double visible) {
    layout_.pieces.clear();
    for (std::size_t i = 0; i < layout_.slices.size();) {
      std::size_t end = i + 1;
      while (end < layout_.slices.size() && !layout_.slices[end].begins) ++end;
      divide_segment(i, end, visible);
      if (layout_.pieces.size() > limits_.most_pieces && visible < limits_.width) return false;
      i = end;
    }
    return true;
  }

  // Blocks of a segment, one by one where they can be seen, onto its slices [first, last).
  void divide_segment(std::size_t first, std::size_t last, double visible) {
    const MapSlice& slice = layout_.slices[first];
    const std::vector<MapBlock>& blocks = groups_[slice.group].segments[slice.segment].blocks;
    double at = 0;
    for (std::uint32_t i = 0; i < blocks.size();) {
      std::uint32_t end = i + 1;
      double width = width_of(blocks[i]);
      layout_.cut_unmapped |= width < static_cast<double>(blocks[i].size) / layout_.bytes_per_point * 0.999;
      if (width < visible)
        for (; end < blocks.size() && width < 2 * visible && width_of(blocks[end]) < visible; ++end)
          width += width_of(blocks[end]);
      add_piece(first, last, {slice.group, slice.segment, i, end, 0, at, width});
      at += width;
      i = end;
    }
  }

  // Cut where its segment goes on in the next row.
  void add_piece(std::size_t first, std::size_t last, MapPiece piece) {
    double at = piece.x, left = piece.width;
    for (std::size_t i = first; i < last && left > 0; ++i) {
      const MapSlice& slice = layout_.slices[i];
      const bool final = i + 1 == last;
      if (at >= slice.width && !final) {
        at -= slice.width;
        continue;
      }
      piece.row = slice.row;
      piece.x = slice.x + at;
      piece.width = final ? left : std::min(left, slice.width - at);
      if (piece.width > 0) layout_.pieces.push_back(piece);
      left -= piece.width;
      at = 0;
    }
  }

  const std::vector<MapGroup>& groups_;
  SegmentMapLimits limits_;
  std::vector<std::vector<std::uint32_t>> orders_;  // segments of each group, as drawn
  SegmentMapLayout layout_;
};

}  // namespace

SegmentMapLayout lay_out_segments(const std::vector<MapGroup>& groups, const SegmentMapLimits& limits) {
  return Layout(groups, limits).make();
}

}  // namespace memwall
