#include "study/step_work.h"

namespace memwall {

StepWork::StepWork(const Trace& step) {
  for (const Op& op : step.ops) {
    const bool is_work = op.kind == OpKind::kernel || op.kind == OpKind::memset || op.kind == OpKind::collective;
    if (is_work && !repeats(op)) ++counts_[{op.kind, step.strings[op.name], op.duration.count()}];
  }
}

}  // namespace memwall
