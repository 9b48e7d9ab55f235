// Runs side by side: stacked bars of time and memory, and the way from the first to another as a waterfall.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/figure/figure.h"

namespace memwall {

enum class Quantity : std::uint8_t { seconds, bytes };

struct ComparePart {
  std::string name;  // "compute", "activation": also chooses the colour
  double value = 0;  // seconds or bytes; may be negative in a waterfall only
};

struct CompareBar {
  std::string label;  // the run: "checkpoint:mode=full"
  std::vector<ComparePart> parts;
  bool recorded = true;  // else nobody knows its value, and `parts` is empty
};

// All bars share one scale; each says how it differs from the first.
struct ComparePanel {
  std::string title;  // "step time"
  Quantity quantity = Quantity::seconds;
  std::vector<CompareBar> bars;
  double limit = 0;        // a line across the bars, 0 = none
  std::string limit_name;  // "capacity"
};

// From the base's total, part by part, to the other's.
struct Waterfall {
  std::string title, base_label, other_label;
  Quantity quantity = Quantity::seconds;
  double base = 0;
  std::vector<ComparePart> changes;  // the other's total is base + all of them; zeros are left out
};

struct CompareChart {
  std::string title, subtitle;
  std::vector<ComparePanel> panels;
  std::vector<Waterfall> waterfalls;
};

Figure draw_comparison(const CompareChart& chart);

}  // namespace memwall
