// Results for a reader: one line per row, figures with three digits and a unit that fits.
#pragma once

#include <string>

#include "validate/measurement/measurement.h"

namespace memwall {

// benchmark, parameters, median, rate (GB/s, TFLOP/s), spread (10th to 90th percentile, as a share of the
// median), note. "" for no rows.
std::string results_table(const MeasurementSet& set);
// "1.23 us", "64.0 MiB", "17", "85.0 %": a figure of a unit of measurement.h.
std::string figure_text(double value, const std::string& unit);
// "bytes=64KiB threads=2": sizes with binary units where these divide them.
std::string parameters_text(const Measurement& m);

}  // namespace memwall
