// The tiers of a run as a chart: how full each gets and with what, and what the links carried.
#pragma once

#include "traces/figure/tiers_figure.h"
#include "traces/run/run.h"

namespace memwall::gui {

// `run`: whole, or of an outline: its lists of ops and storages are not needed.
TiersChart tiers_chart(const Run& run);

}  // namespace memwall::gui
