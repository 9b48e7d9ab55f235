// Microbenchmarks against the machine file that was made of them: what the fit leaves over.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sim/machine/machine.h"
#include "validate/calibrate/calibrate.h"
#include "validate/report/validation.h"

namespace memwall {

// Transfers of some sizes as measured and as `machine` prices them.
std::vector<ValidationRow> transfer_rows(const MeasurementSet& measurements, const Machine& machine,
                                         std::string_view backend);

// What calls cost on the host, as measured and as the machine file has it.
std::vector<ValidationRow> call_rows(const MeasurementSet& measurements, const Machine& machine,
                                     std::string_view backend);

// The largest of each kind of kernel, HBM bandwidth, copies beside opposite ones, and the CPU's optimizer,
// likewise (report/kernel_rows.cpp).
std::vector<ValidationRow> kernel_rows(const MeasurementSet& measurements, const Machine& machine,
                                       std::string_view backend);

// One row per route: the median of what its numbers and curve leave over.
std::vector<ValidationRow> residual_rows(const Calibration& calibration, std::string_view backend);

// One row: is the committed machine file, byte by byte, what is made of the measurements today?
ValidationRow machine_file_row(const Calibration& calibration, const std::filesystem::path& committed);

}  // namespace memwall
