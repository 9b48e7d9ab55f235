// What a step takes of energy and money, on all GPUs together, as far as the machine has figures.
//
// A GPU draws `idle_power` always, and what `power` is more than that while a kernel, a memset or a collective runs on
// it: linear in its busy time, as Fan, Weber and Barroso ("Power Provisioning for a Warehouse-sized Computer", ISCA
// 2007) found for servers. `power` is what a data sheet allows, so that kernels bound by memory take less than counted
// here. It contains the GPU's own memory: what crosses that is listed and not added. Added are
//   bytes over every other link x its energy per byte (compressed where they cross compressed),
//   bytes read from and written to every other tier x its energy per byte (as stored: less where the tier compresses),
//   the host's power x the share of its GPUs that take part.
// What a machine file does not state is not in the sum; a GPU without both powers has none.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traces/run/run.h"

namespace memwall {

// A link or a tier. Bytes and joules of one step, all GPUs together.
struct EnergyShare {
  std::string name;
  double bytes = 0;
  std::optional<double> joules;  // absent: the machine has no figure
  bool in_gpu_power = false;     // listed, not added
};

struct StepEnergyPrice {
  std::uint32_t gpus = 1;                 // of the trace, times the ranks that run it
  double busy_share = 0;                  // of the GPUs' time: something runs that counts as load
  std::optional<double> energy;           // joules: all of what follows; absent without the powers of the GPU
  double gpu_idle = 0, gpu_load = 0;      // joules, of that: what the GPUs draw always, and what more under load
  std::optional<double> host;             // joules; absent without its power
  std::vector<EnergyShare> links, tiers;  // as Machine's; those that carry or move nothing have 0 bytes
  std::optional<double> price;            // dollars; absent without a price per hour
  // Keys of the machine file that are not there and without which something above is absent: "idle_power".
  std::vector<std::string> missing;
};

// The step's time is that from the first boundary to the end of the last step, by the number of steps. A trace of
// several ranks counts each rank's GPUs.
StepEnergyPrice step_energy_price(const Run& run);

}  // namespace memwall
