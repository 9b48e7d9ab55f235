// Makes a machine file of measurements: latencies, bandwidths, efficiency curves, duplex factors, with what
// the fit leaves over. What was not measured is taken from a base machine and says so in its source.
#pragma once

#include <string>
#include <vector>

#include "validate/measurement/measurement.h"

namespace memwall {

struct CalibrationSettings {
  std::string name;  // of the machine; "" = from the GPU's name
  std::string base;  // machine that gives what was not measured; "" = the shipped one nearest to the GPU
};

// How well one number, or curve, explains the rows it was fitted to.
struct Residual {
  std::string path;          // "route.h2d.efficiency", as `memwall machines show` prints it
  std::string value;         // as in the file
  std::string measurements;  // the benchmark and its range of parameters
  std::size_t rows = 0;
  double median = 0, worst = 0;  // relative: |predicted - measured| / measured
};

struct Calibration {
  std::string text;  // the machine file, loadable by models/hw; every number with its source
  std::vector<Residual> residuals;
  std::vector<std::string> notes;  // what was taken from the base, what looks odd but was accepted
};

// Throws InputError for data that make no sense, naming row and figure: a rate above what physics allows
// (a copy faster than its memory), a time that falls as the size grows beyond the noise, a duplex rate above the
// single one, latencies of a second, fewer than the least rows. Throws UsageError for an unknown base.
Calibration calibrate(const MeasurementSet& measurements, const CalibrationSettings& settings);

}  // namespace memwall
