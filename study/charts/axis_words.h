// How axes of a study and fields of its outcomes are called in a picture, and in which unit their numbers stand.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "study/sweep/axis.h"
#include "study/sweep/unit_of_field.h"
#include "traces/figure/number_axis.h"

namespace memwall {

// The names of an axis's values: as they are typed, but for sizes, rates and times ("11.3 GB/s") and for files (of
// steps, machines, plans), which have neither folder nor ending; where they differ so.
std::map<std::string, std::string> value_names(const Axis& axis);

// Are all values of an axis numbers of one unit? Those of a range are.
bool is_numeric(const Axis& axis);

// A numeric axis with its unit, as it was typed: sizes in GiB stay binary.
NumberAxis number_axis_of(const Axis& axis);

// A field by its name or short name: "step time" in seconds, "peak of GPU memory" in bytes.
NumberAxis field_axis(const std::string& name);

AxisUnit axis_unit_of(FieldUnit unit);

}  // namespace memwall
