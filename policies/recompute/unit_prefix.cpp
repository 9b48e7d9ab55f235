#include "policies/recompute/unit_prefix.h"

namespace memwall {

UnitPrefix unit_prefix(const Trace& trace, const RecomputeUnit& unit, bool early_stop) {
  UnitPrefix prefix;
  for (std::size_t i = 0; i < unit.ops.size(); ++i) {
    bool keeps = false, keeps_result = false;
    for (const Use& use : trace.uses_of(trace.ops[unit.ops[i]])) {
      keeps = keeps || use.saved;
      keeps_result = keeps_result || (use.saved && use.access == Access::write);
    }
    if (!keeps) continue;
    prefix.known = true;
    prefix.ops = keeps_result ? i + 1 : i;
    prefix.stops_in_call = !keeps_result;
  }
  if (prefix.known && !early_stop) prefix = {true, unit.ops.size(), false};
  return prefix;
}

}  // namespace memwall
