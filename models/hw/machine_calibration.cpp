#include "models/hw/machine_calibration.h"

#include <fmt/format.h>

#include <array>

#include "models/hw/machine_parts.h"
#include "models/hw/machine_text.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr double kUsualLimit = 0.05;

ComponentRows read_rows(const schema::Calibration& from, const std::string& machine) {
  ComponentRows rows;
  rows.name = from.name();
  rows.measure = static_cast<ComponentMeasure>(static_cast<int>(from.measure()) - 1);
  rows.table = from.table();
  for (const std::string& condition : from.where()) {
    const std::size_t equals = condition.find('=');
    if (equals == std::string::npos || equals == 0)
      throw InputError(fmt::format("{}: calibration.{}: where \"{}\" names no column; expected \"gpu=h200\".", machine,
                                   rows.name, condition));
    rows.where.emplace_back(condition.substr(0, equals), condition.substr(equals + 1));
  }
  rows.of = from.of();
  if (from.rows() != schema::Calibration::all) {
    rows.every = 2;
    rows.first = from.rows() == schema::Calibration::odd ? 1 : 0;
  }
  rows.held_out = from.held_out();
  if (from.has_smallest()) rows.smallest = size_of(from.smallest());
  if (from.has_largest()) rows.largest = size_of(from.largest());
  rows.limit = from.has_limit() ? share_of(from.limit()) : kUsualLimit;
  if (from.has_limit()) rows.reason = from.limit().source();
  return rows;
}

}  // namespace

std::string_view to_string(ComponentMeasure measure) {
  static constexpr std::array<std::string_view, kComponentMeasures> kNames{
      "stream",    "private_read", "shared_read",     "load_latency", "small_kernel", "copy_time",
      "copy_rate", "storage_rate", "collective_time", "product",      "attention"};
  return kNames[static_cast<std::size_t>(measure)];
}

std::vector<ComponentRows> component_rows(const std::string& name_or_path) {
  const MachineText text = read_machine_text(name_or_path, {});
  std::vector<ComponentRows> result;
  for (const schema::Calibration& c : text.machine().calibration())
    result.push_back(read_rows(c, text.machine().name()));
  return result;
}

}  // namespace memwall
