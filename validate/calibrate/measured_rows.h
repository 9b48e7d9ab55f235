// Rows of a benchmark as calibration takes them: refused, by name and figure, where they make no sense.
#pragma once

#include <string>
#include <vector>

#include "validate/calibrate/transfer_time_model.h"
#include "validate/measurement/measurement.h"

namespace memwall {

// "copy_host_hbm_pinned (bytes=4096)".
std::string row_name(const Measurement& row);

// Measured rows of times. Throws InputError where a median is not a positive finite number of seconds;
// `may_be_negative` for differences of two instants.
std::vector<Measurement> time_rows(const MeasurementSet& set, const std::string& benchmark,
                                   bool may_be_negative = false);

// The parameter `bytes` (or `working_set`), else the bytes that the row says it moved. Throws InputError.
double size_of(const Measurement& row);
// The bytes that the row says it moved, else its parameter. Throws InputError.
double traffic_of(const Measurement& row);

// One time per size, ascending: the median where several rows have one size. Throws InputError where a time
// falls by more than noise while the size grows fourfold: by over a fifth, the ranges from low to high apart.
std::vector<SizedTime> times_by_size(const std::vector<Measurement>& rows);

// "copy_host_hbm_pinned, 13 sizes from 4 KiB to 256 MiB". REQUIRES: rows of one benchmark, not empty.
std::string sizes_sentence(const std::vector<Measurement>& rows);

// Figures as a machine file has them: four significant digits, a fitting unit.
std::string size_text(double bytes);  // exact: "64 KiB", "12345 B"
std::string rate_text(double bytes_per_second);
std::string flops_text(double flops_per_second);
std::string time_text(double seconds);
std::string plain_text(double number);

}  // namespace memwall
