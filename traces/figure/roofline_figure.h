// A roofline: performance over arithmetic intensity, both logarithmic, under one roof per level of memory and per
// data type. A point is an operator: its area is its share of the time, its colour its class.
//
// Williams, Waterman and Patterson 2009; a roof per level as in Yang, Kurth and Williams 2020.
#pragma once

#include <string>
#include <vector>

#include "traces/figure/figure.h"

namespace memwall {

struct SlopedRoof {
  std::string name;             // "HBM"
  double bytes_per_second = 0;  // > 0
};

struct FlatRoof {
  std::string name;             // "bf16"
  double flops_per_second = 0;  // > 0
};

struct RooflinePoint {
  std::string name;    // "mm, backward": the first line in the key, or a point's name on hovering
  std::string module;  // "layers.*.mlp.up", "" = unknown: the second
  std::string detail;  // "26.3 % of the time, 71 % of roof, compute": the third
  std::string word;    // operator class: chooses the colour
  double share = 0;    // of the time, 0 to 1
  double flops_per_second = 0;
  double intensity = 0;       // at the last of the sloped roofs; infinite or 0: its traffic does not reach that level
  double near_intensity = 0;  // at the first of them; 0 = not known
};

struct RooflineChart {
  std::string title, subtitle;
  std::vector<SlopedRoof> memory;  // nearest first
  std::vector<FlatRoof> compute;
  std::vector<RooflinePoint> points;  // most time first; those without FLOPs are listed in the key, not drawn
};

// The first ten points are numbered, and named in a key beside the drawing.
Figure draw_roofline(const RooflineChart& chart);

}  // namespace memwall
