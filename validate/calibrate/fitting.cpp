#include "validate/calibrate/fitting.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "models/hw/kernel_cost.h"
#include "validate/calibrate/measured_rows.h"

namespace memwall {

Fitting::Fitting(const MeasurementSet& measurements, const std::string& base_name_or_path)
    : set(measurements), base_name(base_name_or_path), base(load_machine(base_name_or_path)), machine_file(base_name_or_path) {
  base_name = base.name;
}

void Fitting::fit(const std::string& path, const std::string& value, const std::string& measurements,
                  std::vector<PricedRow> rows) {
  machine_file.set(path, value, "measured");
  numbers.push_back({path, measurements, std::move(rows)});
}

void Fitting::state(const std::string& path, const std::string& value, const std::string& key) {
  machine_file.set(path, value, fmt::format("measured {}: {} of the results' environment", date, key));
}

double Fitting::environment_number(const std::string& key) const {
  const std::string text = value_of(set.environment, key);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool sound = error == std::errc() && end == text.data() + text.size() && std::isfinite(value) && value >= 0;
  return sound ? value : 0;
}

void Fitting::require_class(OperatorClass operator_class) {
  const std::string path = fmt::format("gpu.efficiency.{}", to_string(operator_class));
  if (machine_file.has(path)) return;
  const KernelEfficiency e = efficiency_of(base.gpu, operator_class);
  const std::string source =
      fmt::format("not measured; as class \"other\" of {}, which does not list this one", base_name);
  machine_file.set(path + ".compute_share", plain_text(e.compute), source);
  machine_file.set(path + ".memory_share", plain_text(e.memory), source);
  machine_file.set(path + ".fixed", time_text(to_seconds(e.fixed)), source);
}

void Fitting::require_bandwidth(const std::string& path, double rate, const std::string& reason) {
  const double present = machine_file.number(path, 0);
  if (present >= rate * (1 - 5e-4)) return;  // as written, in four digits
  const bool measured =
      std::erase_if(numbers, [&](const FittedNumber& n) { return n.path == path && n.in_source; }) > 0;
  notes.push_back(fmt::format("{} is taken as {}, because {} reached that; {} {}.", path, rate_text(rate), reason,
                              measured ? "by itself it was measured at" : "the base says", rate_text(present)));
  machine_file.set(path, rate_text(rate), fmt::format("measured {}: {} reached it", date, reason));
}

}  // namespace memwall
