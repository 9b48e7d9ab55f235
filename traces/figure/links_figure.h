// Links over time: what flows over each, in one small chart per link, against its bandwidth.
#pragma once

#include <string>
#include <vector>

#include "sim/units.h"
#include "traces/figure/figure.h"
#include "traces/figure/instants.h"

namespace memwall {

struct LinkChart {
  std::string name;           // "pcie_h2d"
  std::string note;           // at the right: "12.3 GB, 45 % of the time"
  std::vector<Time> times;    // ascending
  std::vector<double> rates;  // bytes per second from the time of the same index until the next, >= 0
  double bandwidth = 0;       // bytes per second, 0 = unknown
};

struct LinksChart {
  std::string title, subtitle;
  Time begin{}, end{};
  std::vector<LinkChart> links;
  std::vector<InstantMark> marks = {};  // ascending; those outside are left out
};

// A point of the drawing shows the mean over its width: the area is the bytes carried.
// REQUIRES: begin <= end, and as many rates as times.
Figure draw_links(const LinksChart& chart);

// The mean rate in each of `columns` equal parts of [begin, end]. Before the first time it is 0.
std::vector<double> mean_rates(const LinkChart& link, Time begin, Time end, std::size_t columns);

}  // namespace memwall
