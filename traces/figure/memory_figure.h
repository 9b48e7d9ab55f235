// The memory of one tier over time: what is in it by kind of storage, stacked, under its capacity.
#pragma once

#include <string>
#include <vector>

#include "sim/units.h"
#include "traces/figure/figure.h"

namespace memwall {

// One kind of storage. Values hold from the chart's time of the same index until the next.
struct MemoryLayer {
  std::string name;           // "activation": also chooses the colour
  std::vector<Bytes> values;  // >= 0, one per MemoryChart::times
};

// A line of its own above the layers, at its own times: what the allocator holds.
struct MemoryOutline {
  std::string name;           // "reserved by the allocator"; "" = none
  std::vector<Time> times;    // ascending
  std::vector<Bytes> values;  // one per time
};

struct MemoryChart {
  std::string title, subtitle;
  Time begin{}, end{};
  std::vector<Time> times;          // ascending
  std::vector<MemoryLayer> layers;  // from the bottom up
  MemoryOutline outline;
  Bytes capacity = 0;  // 0 = unknown
};

// Where one point of the drawing stands for several instants it shows the highest of them, so
// that no peak is lost. REQUIRES: begin <= end, and as many values as times everywhere.
Figure draw_memory(const MemoryChart& chart);

}  // namespace memwall
