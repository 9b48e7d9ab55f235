#include "models/hw/machine_durations.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace memwall {

std::string negative_duration(const Machine& machine) {
  const HostCosts& host = machine.host;
  std::vector<std::pair<std::string, Duration>> all{{"host.calls.launch", host.launch},
                                                    {"host.calls.copy", host.copy_call},
                                                    {"host.calls.event", host.event_call},
                                                    {"host.calls.allocator", host.allocator_call},
                                                    {"host.calls.device_malloc", host.device_malloc},
                                                    {"host.calls.device_free", host.device_free},
                                                    {"host.calls.page_map", host.page_map},
                                                    {"host.calls.page_unmap", host.page_unmap},
                                                    {"host.calls.pinned_allocation", host.pinned_allocation},
                                                    {"host.calls.framework.eager_forward", host.eager_forward},
                                                    {"host.calls.framework.eager_backward", host.eager_backward},
                                                    {"host.calls.framework.eager_optimizer", host.eager_optimizer},
                                                    {"host.calls.framework.compiled_call", host.compiled_call},
                                                    {"gpu.matrix.start_up", machine.gpu.matrix.start_up}};
  for (const KernelEfficiency& e : machine.gpu.efficiencies)
    all.emplace_back(fmt::format("gpu.efficiency.{}.fixed", to_string(e.operator_class)), e.fixed);
  for (const auto& [name, duration] : all)
    if (duration.count() < 0)
      return fmt::format("{} is {:g} us; expected a time that is not negative", name, to_seconds(duration) * 1e6);
  return "";
}

}  // namespace memwall
