#include "study/compiled_execution.h"

#include <algorithm>
#include <set>
#include <string>

#include "sim/error.h"

namespace memwall {
namespace {

bool is_async(const RecipeItem& item) {
  return item.what == "layout" && item.setting.find("async_tensor_parallel=true") != std::string::npos;
}

// Where messages and products go in pieces: what torch.compile's pass (micro_pipeline_tp) writes.
std::set<StringId> modules_in_pieces(const Trace& trace) {
  std::set<StringId> modules;
  for (const Op& op : trace.ops)
    if (trace.strings[op.name].starts_with("symm_mem::")) modules.insert(op.module);
  return modules;
}

}  // namespace

void require_compiled(const Trace& trace) {
  if (std::ranges::none_of(trace.recipe, is_async)) return;
  const std::set<StringId> modules = modules_in_pieces(trace);
  const auto is_eager = [&](const Op& op) {
    return op.kind == OpKind::kernel && op.dispatch != Dispatch::compiled && op.phase != Phase::optimizer &&
           modules.contains(op.module);
  };
  const auto eager = std::ranges::find_if(trace.ops, is_eager);
  if (eager == trace.ops.end()) return;
  throw UsageError(
      "async_tensor_parallel: torchtitan refuses it without torch.compile, whose pass makes the pieces, and "
      "'" +
      trace.strings[eager->module] +
      "' is not compiled; expected --policy compile:modules=layers.* beside it, or "
      "async_tensor_parallel=false.");
}

}  // namespace memwall
