#include "policies/trace/passes_in_turn.h"

#include <fmt/format.h>

#include <utility>

#include "sim/error.h"
#include "sim/trace/pipeline_chunk.h"

namespace memwall {

std::vector<Pass> passes_in_turn(const Trace& trace) {
  bool open = false;  // a forward pass whose backward has not come
  for (const Op& op : trace.ops) {
    if (op.kind != OpKind::mark) continue;
    const std::string& name = trace.strings[op.name];
    if (name.starts_with(kForwardMark) && std::exchange(open, true))
      throw UsageError(fmt::format(
          "In trace '{}' forward passes of several micro-batches follow each other before a backward pass (a pipeline's "
          "warm-up), of which this policy does not tell whose backward is whose: not implemented. A generated job computes "
          "its layers again by its own settings: checkpoint=full, selective; the policies plan, capuchin, g10, "
          "swapadvisor and offload take it.",
          trace.name));
    if (name.starts_with(kBackwardMark)) open = false;
  }
  return passes(trace);
}

}  // namespace memwall
