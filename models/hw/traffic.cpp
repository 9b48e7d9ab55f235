#include "models/hw/traffic.h"

#include <fmt/format.h>

#include "sim/human_text.h"

namespace memwall {

Trace with_possible_traffic(Trace trace, const Machine& machine) {
  if (machine.links.empty()) return trace;
  const double bandwidth = machine.links[machine.hbm_link].bandwidth;
  std::size_t capped = 0;
  for (Op& op : trace.ops) {
    if (op.kind != OpKind::kernel || op.origin != Origin::measured) continue;
    const auto most = static_cast<Bytes>(to_seconds(op.duration) * bandwidth);
    if (op.bytes <= most) continue;
    op.bytes = most;
    ++capped;
  }
  if (capped > 0)
    trace.notes.push_back(fmt::format(
        "The tensors of {} are larger than what HBM moves in the measured time: caches served the rest; the "
        "traffic is taken as time x bandwidth.",
        counted_text(capped, "kernel")));
  return trace;
}

}  // namespace memwall
