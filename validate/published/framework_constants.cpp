#include "validate/published/framework_constants.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>

namespace memwall {
namespace {

struct FittedTable {
  std::string_view table;
  FrameworkConstants constants;
};

// As `memwall validate --published FOLDER --fit` prints them.
constexpr FittedTable kFitted[] = {
    {"deepspeed_azure_zero3_a100", {.kernels = 1, .network = 1, .host = 1}},
};

}  // namespace

Machine with_network(Machine machine, double network) {
  for (Fabric& fabric : machine.fabrics) {
    fabric.bus_bandwidth *= network;
    for (CollectiveModel& model : fabric.collectives) model.bus_bandwidth *= network;
  }
  return machine;
}

std::string scale_text(const FrameworkConstants& constants) {
  return fmt::format("kernels={},host={},collectives=1", constants.kernels, constants.host);
}

FrameworkConstants fitted_constants(const std::string& table) {
  const auto found = std::find_if(std::begin(kFitted), std::end(kFitted),
                                  [&](const FittedTable& fitted) { return fitted.table == table; });
  return found == std::end(kFitted) ? FrameworkConstants() : found->constants;
}

}  // namespace memwall
