// Numbers of one rank's GPU among those of the machine: "rank[7].gpu.clock=0.9" makes the kernels of rank 7 take
// 1 / 0.9 of their time. What that comes to is a scale (study/scale_text.h), which a rank of a folded program leaves it
// for (sim/trace/rank_apart.h).
#pragma once

#include "study/scenario.h"

namespace memwall {

// The same scenario with such settings among its scales instead. Throws UsageError with what of a rank can be set (today
// its clock alone, a factor above 0), and where one is set twice.
Scenario with_rank_settings_as_scales(Scenario scenario);

}  // namespace memwall
