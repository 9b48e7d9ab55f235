#include "validate/measurement/measurement.h"

#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>

#include "sim/quantile.h"

namespace memwall {

std::string to_string(MeasurementStatus status) {
  switch (status) {
    case MeasurementStatus::measured:
      return "measured";
    case MeasurementStatus::not_applicable:
      return "not_applicable";
    case MeasurementStatus::failed:
      return "failed";
  }
  return "";
}

double Measurement::number(const std::string& parameter, double fallback) const {
  const auto found = parameters.find(parameter);
  if (found == parameters.end()) return fallback;
  const std::string& text = found->second;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && std::isfinite(value) ? value : fallback;
}

std::string value_of(const Environment& environment, const std::string& key) {
  for (const auto& [name, value] : environment)
    if (name == key) return value;
  return "";
}

std::vector<Measurement> MeasurementSet::of(const std::string& benchmark) const {
  std::vector<Measurement> found;
  for (const Measurement& m : measurements)
    if (m.benchmark == benchmark && m.status == MeasurementStatus::measured) found.push_back(m);
  return found;
}

void summarize_samples(std::vector<double> samples, Measurement& m) {
  assert(!samples.empty());
  m.median = interpolated_quantile(samples, 0.5);
  m.low = interpolated_quantile(samples, 0.1);
  m.high = interpolated_quantile(samples, 0.9);
  m.samples = static_cast<std::uint32_t>(samples.size());
}

}  // namespace memwall
