#include "policies/sharding/zero_settings.h"

#include <algorithm>
#include <string>

#include "sim/error.h"

namespace memwall {

std::vector<ParameterInfo> zero_parameters() {
  return {integer("stage", kRequired, {0, 3}, "",
                  "0 = plain data parallel, 1 = optimizer states, 2 = and gradients, 3 = and parameters are split over "
                  "the ranks"),
          integer("ranks", kRequired, {2, 1 << 20}, "ranks", "data-parallel ranks"),
          bytes("bucket_bytes", "25MiB", 1,
                "size of one gradient reduction or parameter gather; a larger tensor goes alone"),
          flag("overlap", true, "1 = communicate beside compute, 0 = compute waits for every collective"),
          flag("prefetch", true, "stage 3: 1 = gather the next unit while this one computes; needs overlap=1"),
          bytes("reuse_distance", 0, 0,
                "stage 3: a gathered parameter is kept if less than this of other parameters is used before it is "
                "needed again; backward finds what the re-run of its own layer (checkpoint) has gathered in any case"),
          choice("mode", "paper", {"paper"}, "paper = the volumes of Rajbhandari et al. 2020")};
}

ZeroSettings zero_settings(const PolicyArguments& arguments) {
  return {.stage = static_cast<int>(arguments.integer("stage")),
          .ranks = static_cast<std::uint32_t>(arguments.integer("ranks")),
          .bucket = arguments.bytes("bucket_bytes"),
          .overlap = arguments.flag("overlap"),
          .prefetch = arguments.flag("prefetch") && arguments.flag("overlap"),
          .reuse_distance = arguments.bytes("reuse_distance")};
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
