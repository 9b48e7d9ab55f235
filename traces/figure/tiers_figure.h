// The memory hierarchy at a glance: how full each tier gets and with what, and how much the links
// between them carry.
#pragma once

#include <string>
#include <vector>

#include "sim/units.h"
#include "traces/figure/figure.h"

namespace memwall {

struct TierPart {
  std::string name;  // a kind of storage: "activation"
  Bytes bytes = 0;   // >= 0
};

struct TierRow {
  std::string name;             // "hbm"
  Bytes capacity = 0;           // 0 = unknown
  Bytes unavailable = 0;        // of the capacity: context, driver
  std::vector<TierPart> parts;  // what makes the peak
  bool recorded = true;         // else nobody knows what it held, and `parts` is empty
};

struct TierLinkRow {
  std::string name;        // "pcie_h2d"
  Bytes bytes = 0;         // carried
  double utilization = 0;  // share of what it could have carried, 0 to 1
  double bandwidth = 0;    // bytes per second
};

struct TiersChart {
  std::string title, subtitle;
  std::vector<TierRow> tiers;
  std::vector<TierLinkRow> links;  // may be empty
};

// Every bar has the scale of its own tier, whose capacity stands beside it: tiers differ a thousandfold.
Figure draw_tiers(const TiersChart& chart);

}  // namespace memwall
