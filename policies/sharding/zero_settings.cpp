#include "policies/sharding/zero_settings.h"

#include <algorithm>
#include <string>

#include "sim/error.h"

namespace memwall {

std::vector<ParameterInfo> zero_parameters() {
  return {
      {"stage", "",
       "0 = plain data parallel, 1 = optimizer states, 2 = and gradients, 3 = and parameters are split over the ranks"},
      {"ranks", "", "data-parallel ranks, 2 to 1048576"},
      {"bucket_bytes", "25MiB", "size of one gradient reduction or parameter gather; a larger tensor goes alone"},
      {"overlap", "1", "1 = communicate beside compute, 0 = compute waits for every collective"},
      {"prefetch", "1", "stage 3: 1 = gather the next unit while this one computes; needs overlap=1"},
      {"reuse_distance", "0",
       "stage 3: bytes; a gathered parameter is kept if less than this of other parameters is used before it is needed "
       "again"},
      {"mode", "paper", "paper = the volumes of Rajbhandari et al. 2020"}};
}

ZeroSettings zero_settings(const PolicyArguments& arguments) {
  ZeroSettings settings;
  settings.stage = static_cast<int>(arguments.integer("stage", 0, 3));
  settings.ranks = static_cast<std::uint32_t>(arguments.integer("ranks", 2, 1 << 20));
  settings.bucket = arguments.bytes("bucket_bytes");
  settings.overlap = arguments.flag("overlap");
  settings.prefetch = arguments.flag("prefetch") && settings.overlap;
  settings.reuse_distance = arguments.bytes("reuse_distance");
  arguments.choice("mode", {"paper"});
  if (settings.bucket < 1)
    throw UsageError("Policy 'zero': bucket_bytes=0 leaves no room for a gradient; expected at least 1 byte.");
  return settings;
}

void require_fabric(const ZeroSettings& settings, const Machine& machine) {
  if (machine.fabric(settings.ranks) != nullptr) return;
  std::string reach = machine.fabrics.empty() ? "it has no fabric at all" : "";
  for (const Fabric& fabric : machine.fabrics)
    reach += (reach.empty() ? "" : ", ") + fabric.name + " reaches " + std::to_string(fabric.max_ranks);
  throw UsageError("Policy 'zero': ranks=" + std::to_string(settings.ranks) + " is more than machine '" + machine.name +
                   "' connects: " + reach + ".");
}

}  // namespace memwall
