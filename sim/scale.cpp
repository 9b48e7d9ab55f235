#include "sim/scale.h"

#include <cmath>

namespace memwall {
namespace {
Duration times(Duration d, double factor) {
  return factor == 1 ? d : Duration(std::llround(static_cast<double>(d.count()) * factor));
}
}  // namespace

Trace scaled(Trace trace, const ScaleFactors& factors) {
  for (Op& op : trace.ops) {
    if (!op.placed) op.host_gap = times(op.host_gap, factors.host);
    op.host_cost = times(op.host_cost, factors.host);
    switch (op.kind) {
      case OpKind::copy:
      case OpKind::storage_io:
        op.duration = times(op.duration, factors.copies);
        break;
      case OpKind::host_work:
        op.duration = times(op.duration, factors.host);
        break;
      default:
        op.duration = times(op.duration, factors.kernels);
    }
  }
  return trace;
}

}  // namespace memwall
