#include "policies/planners/host_transfer.h"

#include <utility>

#include "sim/error.h"

namespace memwall {

TransferStyle to_host() {
  TransferStyle style;
  style.tier = "host";
  return style;
}

void require_host(const std::string& planner, const Machine& machine) {
  const int host = machine.tier("host"), device = machine.tier("hbm");
  if (host < 0)
    throw UsageError("Policy '" + planner + "' needs a tier 'host'; machine '" + machine.name + "' has none.");
  for (const auto& [from, to] : {std::pair(device, host), std::pair(host, device)})
    if (device < 0 || machine.route(from, to, false) == nullptr)
      throw UsageError("Policy '" + planner + "' copies to page-locked memory of the host and back; machine '" +
                       machine.name + "' has no way from '" + (from == host ? "host' to 'hbm'." : "hbm' to 'host'."));
}

}  // namespace memwall
