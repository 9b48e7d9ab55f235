// What a row of a tier's memory draws, pixel by pixel. Internal to gui/drawing.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "gui/drawing/row_drawing.h"

namespace memwall::gui {

// From the bottom up: what stays through a step, then what comes and goes.
inline constexpr std::array<StorageKind, kStorageKinds> kStackOrder = {
    StorageKind::unknown, StorageKind::parameter,  StorageKind::optimizer_state, StorageKind::gradient,
    StorageKind::input,   StorageKind::activation, StorageKind::workspace,       StorageKind::communication_buffer};

// The pixels of a row's place in which its run is, from `left` on, and the instants that they show.
struct OccupancyPixels {
  double left = 0, width = 0;
  std::size_t count = 1;
  TimeRange range;  // in times of the run
  double x(std::size_t pixel) const { return left + width * static_cast<double>(pixel) / static_cast<double>(count); }
  // REQUIRES: left <= x < left + width.
  std::size_t at(double x) const;
  Time begin_of(std::size_t pixel) const;
  TimeRange range_of(std::size_t pixel) const { return {begin_of(pixel), begin_of(pixel + 1)}; }
};
// Nothing where the run is not in view.
std::optional<OccupancyPixels> occupancy_pixels(const RowPlace& place);

// The highest of every pixel, as the allocator counts.
struct OccupancyCurves {
  std::vector<Bytes> allocated, reserved;
};
// Throws InputError.
OccupancyCurves occupancy_curves(const RowPlace& place, const OccupancyPixels& pixels);

}  // namespace memwall::gui
