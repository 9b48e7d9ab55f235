#include "study/device_budget.h"

#include <fmt/format.h>

#include <utility>

#include "models/hw/quantity.h"
#include "sim/error.h"

namespace memwall {

GivenBudget parse_device_budget(const std::string& text) {
  const bool is_share = text.ends_with("%");
  try {
    const double value = parse_quantity(text, is_share ? Dimension::share : Dimension::size);
    if (is_share ? value > 0 && value <= 1 : value >= static_cast<double>(kLeastBudget) && value < 0x1p60)
      return is_share ? GivenBudget{.share = value} : GivenBudget{.bytes = static_cast<Bytes>(value)};
  } catch (const QuantityError&) {
  }
  throw UsageError(fmt::format(
      "The budget is \"{}\"; expected a size from 1 MiB on (24GiB, 80GB), or a share of the device (60%).", text));
}

std::shared_ptr<const Machine> with_device_bytes(const Machine& machine, const Trace& trace, Bytes bytes) {
  Machine other = machine;
  const int tier = other.tier("hbm");
  if (tier < 0) throw UsageError("Machine '" + machine.name + "' has no memory 'hbm', which budgets are for.");
  Tier& device = other.tiers[static_cast<std::size_t>(tier)];
  device.compression_ratio = 1;
  device.capacity = device.unavailable + trace.untracked_bytes + bytes;
  return std::make_shared<const Machine>(std::move(other));
}

}  // namespace memwall
