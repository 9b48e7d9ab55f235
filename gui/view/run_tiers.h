// The tiers of a run as a chart, from what is known as soon as it is open.
#pragma once

#include "traces/figure/tiers_figure.h"
#include "traces/run/run.h"

namespace memwall::gui {

// `run`: whole, or of an outline: its lists of ops and storages are not needed.
TiersChart tiers_chart(const Run& run);

// "gpt on a100, lru + offload"
std::string headline_of(const Run& run);

}  // namespace memwall::gui
