#include "cli/capacity_option.h"

#include <fmt/format.h>

#include "models/hw/quantity.h"
#include "sim/error.h"

namespace memwall {

Bytes parse_capacity(const std::string& text) {
  try {
    const double bytes = parse_quantity(text, Dimension::size);
    if (bytes < 1 || bytes > 0x1p60) throw QuantityError("expected from 1 byte to 2^60, as in 80GiB");
    return static_cast<Bytes>(bytes);
  } catch (const QuantityError& error) {
    throw UsageError(fmt::format("--capacity {}: {}.", text, error.what()));
  }
}

}  // namespace memwall
