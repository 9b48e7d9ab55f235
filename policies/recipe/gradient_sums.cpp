#include "policies/recipe/gradient_sums.h"

#include "policies/trace/operator_name.h"

namespace memwall {

bool sums_gradients_anew(const Trace& trace) {
  bool anew = false;
  for (const Op& op : trace.ops) {
    if (op.phase != Phase::backward || op.kind != OpKind::kernel) continue;
    const std::string& name = operator_of(trace, op);
    if (name == "aten::add_") return false;
    anew = anew || name == "aten::add";
  }
  return anew;
}

}  // namespace memwall
