#include "validate/calibrate/calibrate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "models/hw/machine_file.h"
#include "models/hw/pricer.h"
#include "sim/error.h"
#include "sim/number_text.h"
#include "sim/quantile.h"
#include "validate/calibrate/fitting.h"
#include "validate/calibrate/measured_rows.h"

namespace memwall {
namespace {

constexpr const char* kHostBase = "host-emulation";
constexpr const char* kLastResort = "h100-sxm-80gb";

bool on_host(const MeasurementSet& set) { return value_of(set.environment, "backend") == "host"; }

// The shipped machine of the same compute capability ("9.0") whose memory is nearest; "" if none.
std::string machine_of_capability(const std::string& capability, double memory) {
  std::string best;
  double least = 0;
  for (const Machine& machine : whole_machines()) {
    if (fmt::format("{}.{}", machine.gpu.compute_major, machine.gpu.compute_minor) != capability) continue;
    const double difference = std::abs(static_cast<double>(machine.tiers.front().capacity) - memory);
    if (!best.empty() && difference >= least) continue;
    best = machine.name;
    least = difference;
  }
  return best;
}

std::string base_of(const MeasurementSet& set, const std::string& wanted) {
  if (!wanted.empty()) return wanted;
  const std::string gpu = value_of(set.environment, "gpu.name");
  Measurement memory;
  memory.parameters["bytes"] = value_of(set.environment, "gpu.memory_bytes");
  const double bytes = std::clamp(memory.number("bytes"), 0.0, 0x1p60);
  if (on_host(set)) return kHostBase;
  if (const std::string same = machine_for_device(gpu, static_cast<Bytes>(bytes)); !gpu.empty() && !same.empty())
    return same;
  const std::string capability = value_of(set.environment, "gpu.compute_capability");
  const std::string near = capability.empty() ? "" : machine_of_capability(capability, bytes);
  return near.empty() ? kLastResort : near;
}

bool is_same_gpu(const Fitting& f) {
  const std::string gpu = value_of(f.set.environment, "gpu.name");
  const auto& aliases = f.base.gpu.aliases;
  if (gpu == f.base.gpu.name || std::find(aliases.begin(), aliases.end(), gpu) != aliases.end()) return true;
  // Another memory on the same die.
  const std::string capability = fmt::format("{}.{}", f.base.gpu.compute_major, f.base.gpu.compute_minor);
  return value_of(f.set.environment, "gpu.compute_capability") == capability &&
         f.environment_number("gpu.multiprocessors") == f.base.gpu.multiprocessors;
}

// Text from a file that others wrote: one line, no control characters.
std::string on_one_line(std::string text) {
  for (char& c : text)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  return text;
}

std::string date_of(const MeasurementSet& set) {
  const std::string date = on_one_line(value_of(set.environment, "date")).substr(0, 10);
  return date.empty() ? "on an unknown date" : date;
}

std::string machine_name(const MeasurementSet& set, const std::string& wanted) {
  const std::string source = !wanted.empty() ? wanted
                             : on_host(set)  ? "this-computer"
                                             : value_of(set.environment, "gpu.name");
  std::string name;
  for (const char c : source) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_';
    if (!wanted.empty() && !plain && c != '-')
      throw UsageError(
          fmt::format("The name \"{}\" has the character \"{}\"; expected letters, digits, \"-\", \"_\" and "
                      "\".\".",
                      on_one_line(wanted), on_one_line(std::string(1, c))));
    if (plain)
      name += wanted.empty() && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  while (name.ends_with('-') && wanted.empty()) name.pop_back();
  return name.empty() ? "calibrated" : name;
}

void note_rows_not_used(Fitting& f) {
  constexpr std::size_t kMost = 20;
  std::size_t failed = 0, used = 0;
  std::set<std::string> absent, measured;
  for (const Measurement& row : f.set.measurements) {
    if (row.status == MeasurementStatus::measured) measured.insert(row.benchmark), ++used;
    if (row.status == MeasurementStatus::not_applicable) absent.insert(row.benchmark);
    if (row.status != MeasurementStatus::failed) continue;
    if (++failed <= kMost)
      f.notes.push_back(fmt::format("{} failed and is not used: {}.", row_name(row),
                                    row.note.empty() ? "no reason is given" : on_one_line(row.note)));
  }
  if (failed > kMost) f.notes.push_back(fmt::format("{} further rows failed and are not used.", failed - kMost));
  for (const std::string& name : measured) absent.erase(name);
  if (!absent.empty()) f.notes.push_back(fmt::format("Not measured here: {}.", fmt::join(absent, ", ")));
}

void note_base(Fitting& f, const CalibrationSettings& settings) {
  const std::string gpu = value_of(f.set.environment, "gpu.name");
  if (settings.base.empty() && !f.host && !f.same_gpu)
    f.notes.push_back(
        fmt::format("No machine that comes with memwall has the GPU \"{}\"; what was not measured is as in "
                    "{}, and the peaks are the best measured rates.",
                    on_one_line(gpu), f.base_name));
  else
    f.notes.push_back(fmt::format("What was not measured is as in {}.", f.base_name));
}

Residual residual_of(const FittedNumber& number, const std::string& value, const Machine& machine,
                     const Pricer& pricer) {
  Residual residual{number.path, value, number.measurements, number.rows.size(), 0, 0};
  std::vector<double> errors;
  for (const PricedRow& priced : number.rows) {
    const double predicted = priced.predicted(machine, pricer), measured = priced.row.median;
    errors.push_back(predicted == measured ? 0 : std::abs(predicted - measured) / std::max(std::abs(measured), 1e-12));
  }
  if (errors.empty()) return residual;
  residual.median = median(errors);
  residual.worst = *std::max_element(errors.begin(), errors.end());
  return residual;
}

std::string value_at(const std::vector<MachineNumber>& numbers, const std::string& path) {
  for (const MachineNumber& n : numbers)
    if (n.path == path) return n.value;
  return "";
}

// Once per set of rows: several numbers may share them.
void note_poor_fits(Fitting& f, const std::vector<Residual>& residuals) {
  constexpr double kPoor = 0.25;
  std::set<std::string> told;
  for (const Residual& r : residuals)
    if (r.median > kPoor && told.insert(r.measurements).second)
      f.notes.push_back(
          fmt::format("{} explains its rows poorly ({}: median residual {}): they spread widely, or follow "
                      "another law.",
                      r.path, r.measurements, percent_text(r.median)));
}

void fit_everything(Fitting& f, const CalibrationSettings& settings) {
  f.host = on_host(f.set);
  f.same_gpu = is_same_gpu(f);
  f.date = date_of(f.set);
  note_base(f, settings);
  note_rows_not_used(f);
  fit_identity(f, machine_name(f.set, settings.name));
  fit_device_memory(f);
  fit_matrix_products(f);
  fit_kernels(f);
  fit_host(f);
  fit_routes(f);
  fit_duplex(f);
  fit_fabric(f);
  const std::string what =
      f.host ? "This computer in place of a GPU"
             : on_one_line(value_of(f.set.environment, "gpu.name").empty() ? f.base.gpu.name
                                                                           : value_of(f.set.environment, "gpu.name"));
  f.machine_file.set_text("description", fmt::format("{}, calibrated from measurements of {}; the rest is as in {}.",
                                                     what, f.date, f.base_name));
  f.machine_file.mark_unset(fmt::format("not measured; as in {}: ", f.base_name));
}

// The machine is what the measurements make it: where it cannot be priced, they are at fault.
Residual checked_residual(const FittedNumber& number, const std::string& value, const Machine& machine,
                          const Pricer& pricer) {
  try {
    return residual_of(number, value, machine, pricer);
  } catch (const UsageError& error) {
    throw InputError(fmt::format("The measurements of {} cannot be right: {}", number.measurements, error.what()));
  }
}

}  // namespace

Calibration calibrate(const MeasurementSet& measurements, const CalibrationSettings& settings) {
  Fitting f(measurements, base_of(measurements, settings.base));
  fit_everything(f, settings);
  const std::string comment = fmt::format(
      "Made by `memwall calibrate` from measurements of {}.\nEvery source says what was measured and how far "
      "the number is from explaining it.",
      f.date);
  const Machine machine = parse_machine(f.machine_file.text(comment), "the calibrated machine");
  const auto pricer = make_pricer(machine);
  const std::vector<MachineNumber> values = f.machine_file.numbers();
  Calibration result;
  for (const FittedNumber& number : f.numbers) {
    const Residual residual = checked_residual(number, value_at(values, number.path), machine, *pricer);
    result.residuals.push_back(residual);
    if (number.in_source)
      f.machine_file.set_source(number.path, fmt::format("measured {}: {}, median residual {}", f.date,
                                                         number.measurements, percent_text(residual.median)));
  }
  note_poor_fits(f, result.residuals);
  result.notes = f.notes;
  result.text = f.machine_file.text(comment);
  return result;
}

}  // namespace memwall
