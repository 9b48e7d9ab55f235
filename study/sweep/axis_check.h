// What is wrong with axes whatever else a point has: two that set the same thing, and values that nothing takes.
#pragma once

#include <vector>

#include "study/study.h"
#include "study/sweep/axis_target.h"
#include "study/sweep/sweep_space.h"

namespace memwall {

// Throws UsageError where two axes replace one thing (pcie and link.pcie_h2d.bandwidth), or an axis what the base says
// (--set pcie=gen5 beside the axis pcie).
void require_separate(const std::vector<Axis>& axes, const AxisTargets& targets, const Scenario& base);

// Throws UsageError where the base is wrong by itself, and with axis and value where that value is wrong by itself, and
// at every point that has it: a machine that there is not, a parameter out of its range, another unit. What is wrong
// only beside other values is the failure of those points. Of long axes the first and the last value are looked at.
void require_values(Study& study, const std::vector<Axis>& axes, const AxisTargets& targets, const Scenario& base,
                    const std::vector<PointValues>& points);

}  // namespace memwall
