// The memory of one tier, or of a recorded device, over time: what is in it by kind of storage, stacked, under what the
// allocator holds and under the capacity.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/units.h"
#include "traces/figure/activity_rows.h"
#include "traces/figure/figure.h"
#include "traces/figure/instants.h"

namespace memwall {

// One kind of storage. Values hold from the chart's time of the same index until the next.
struct MemoryLayer {
  std::string name;           // "activation": also chooses the colour
  std::vector<Bytes> values;  // >= 0, one per MemoryChart::times
};

// A line of its own above the layers, at its own times: what the allocator holds.
struct MemoryOutline {
  std::string name;           // "reserved by the allocator"
  std::vector<Time> times;    // ascending
  std::vector<Bytes> values;  // one per time
};

// What is marked as the peak, where that is not the highest stack.
struct MemoryPeak {
  Time at{};
  Bytes bytes = 0;
  std::string name;  // "allocated": said after the bytes
};

struct MemoryChart {
  std::string title, subtitle;
  Time begin{}, end{};
  std::vector<Time> times;              // ascending
  std::vector<MemoryLayer> layers;      // from the bottom up
  std::vector<MemoryOutline> outlines;  // the second and later ones are drawn fainter
  Bytes capacity = 0;                   // 0 = unknown
  InstantUnit unit = InstantUnit::time;
  std::vector<InstantMark> marks{};   // ascending
  std::vector<InstantSpan> phases{};  // ascending, apart
  std::optional<MemoryPeak> peak{};   // default: the highest stack
  std::vector<ActivityRow> activity{};  // below: what makes memory free, and what fills it
};

// Where one point of the drawing stands for several instants it shows the highest of them, so
// that no peak is lost. REQUIRES: begin <= end, and as many values as times everywhere.
Figure draw_memory(const MemoryChart& chart);

}  // namespace memwall
