// A measurement: what one benchmark found for one set of parameters, with its spread.
//
// A set of measurements is what one machine said of itself on one day; calibrate/ makes a
// machine file of it. Names are `what_from_to_how` and listed in docs/validation.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace memwall {

enum class MeasurementStatus : std::uint8_t {
  measured,
  not_applicable,  // the machine has no such thing; `note` says what is missing
  failed           // an error, or wrong data; `note` says which. Never used for calibration
};
std::string to_string(MeasurementStatus status);

struct Measurement {
  std::string benchmark;                          // "copy_host_hbm_pinned"
  std::map<std::string, std::string> parameters;  // "bytes" -> "1048576"; integers in plain decimal
  std::string unit = "s";                         // of the figures below: "s", "B", "count", "share"
  double median = 0, low = 0, high = 0;           // low, high: 10th and 90th percentile
  std::uint32_t samples = 0;
  double bytes = 0;  // moved by one operation, reads and writes together; 0 = none
  double flops = 0;  // done by one operation; 0 = none
  MeasurementStatus status = MeasurementStatus::measured;
  std::string note;

  // Of a parameter written as a plain number; `fallback` where it is absent or no number.
  double number(const std::string& parameter, double fallback = 0) const;
  double bytes_per_second() const { return unit == "s" && median > 0 ? bytes / median : 0; }
  double flops_per_second() const { return unit == "s" && median > 0 ? flops / median : 0; }
};

// What the figures depend on: "date", "backend" (cuda, host), "gpu.name", "gpu.memory_bytes",
// "gpu.multiprocessors", "gpu.clock_hz", "driver", "cuda", "cpu.name", "cpu.count", "kernel",
// "memwall". Keys in the order in which they were found. Never the name of a host or a user.
using Environment = std::vector<std::pair<std::string, std::string>>;
// "" where the key is absent.
std::string value_of(const Environment& environment, const std::string& key);

struct MeasurementSet {
  Environment environment;
  std::vector<Measurement> measurements;

  // Those of one benchmark with status measured, in order.
  std::vector<Measurement> of(const std::string& benchmark) const;
};

// Median, 10th and 90th percentile (linear interpolation between order statistics) and the number
// of samples, into `m`. REQUIRES: not empty, all finite.
void summarize_samples(std::vector<double> samples, Measurement& m);

}  // namespace memwall
