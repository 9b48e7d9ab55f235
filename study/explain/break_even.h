// Break-even curves: step time and peak over an axis where nothing leaves the device (keep), where all blocks are
// computed again (recompute), and where activations wait in host memory (offload); and the values at which two of them
// cross.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "study/sweep/axis.h"
#include "study/sweep/scenario_points.h"
#include "study/sweep/sweep.h"

namespace memwall {

// What stands at each value of the axis, in this order.
inline constexpr std::array<const char*, 3> kChoices = {"keep", "recompute", "offload"};
inline constexpr std::array<const char*, 3> kChoicePolicies = {"none", "checkpoint:mode=full",
                                                               "offload:what=activations"};

struct CurvePoint {
  std::string value;                                 // of the axis, as typed
  std::array<PointRecord, kChoices.size()> choices;  // an error where one was refused
};

// Between two neighbouring values one choice becomes faster than another, or no longer fits, or fits again.
struct BreakEven {
  std::size_t choice = 0;         // index into kChoices: that becomes the faster one, or whose fit changes
  std::size_t other = 0;          // that it overtakes; the same as `choice` where its fit changes
  bool fits_after = true;         // where its fit changes: it fits from `after` on
  std::string before{}, after{};  // neighbours
  std::optional<double> at{};     // interpolated, in the unit of the values; of a fit nothing
};

struct BreakEvenCurve {
  Axis axis;
  std::vector<CurvePoint> points;  // in the order of the axis
  std::vector<BreakEven> crossings;
};

// Of one axis; other memory plans of the scenario are left out. Throws UsageError for an axis that makes no sense, or
// that names policies itself.
BreakEvenCurve break_even_curve(ScenarioPoints& points, const Scenario& scenario, const Axis& axis,
                                const SweepWatch& watch = {});

// Where neighbours change places: the difference of two step times is taken as linear between them, over the logarithm
// of the value where the axis is logarithmic. What crosses twice between neighbours is missed.
std::vector<BreakEven> crossings_of(const std::vector<CurvePoint>& points, bool is_logarithmic);

}  // namespace memwall
