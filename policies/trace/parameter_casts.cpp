#include "policies/trace/parameter_casts.h"

#include <algorithm>

#include "policies/trace/operator_name.h"

namespace memwall {
namespace {

bool is_cast(const Trace& trace, const Op& op) {
  const std::string name = plain_operator_name(operator_of(trace, op));
  return name == "to_copy" || name == "to";
}

}  // namespace

bool is_cast_of_parameter(const Trace& trace, const Dataflow& flow, StorageId storage) {
  const auto writers = flow.writers(storage);
  if (trace.storages[storage].preexisting || writers.size() != 1 || !is_cast(trace, trace.ops[writers.front()]))
    return false;
  const auto uses = trace.uses_of(trace.ops[writers.front()]);
  return uses.size() == 2 && std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
           const Storage& read = trace.storages[use.storage];
           return use.access == Access::read && read.kind == StorageKind::parameter && read.preexisting;
         });
}

std::vector<OpId> cast_ends(const Trace& trace, const Dataflow& flow, const Pass& pass) {
  std::vector<OpId> ends;
  for (OpId id = pass.begin; id < pass.backward; ++id) {
    const Op& op = trace.ops[id];
    if (op.kind != OpKind::free || op.phase != Phase::forward || !is_cast_of_parameter(trace, flow, op.target))
      continue;
    const OpId last = flow.touches(op.target).back().op;
    const auto between = std::span(trace.ops).subspan(last + 1, id - last - 1);
    if (std::any_of(between.begin(), between.end(), [](const Op& other) { return runs_on_device(other.kind); }))
      ends.push_back(id);
  }
  return ends;
}

}  // namespace memwall
