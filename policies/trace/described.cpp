#include "policies/trace/described.h"

#include "policies/trace/operator_name.h"

namespace memwall {

std::string described_op(const Trace& trace, OpId id) {
  const Op& op = trace.ops[id];
  const std::string& name = operator_of(trace, op);
  return "op " + std::to_string(id) + (name.empty() ? " (" + std::string(to_string(op.kind)) + ")" : " '" + name + "'");
}

std::string described_storage(const Trace& trace, StorageId id) {
  const std::string& label = trace.strings[trace.storages[id].label];
  return "storage " + std::to_string(id) + (label.empty() ? "" : " '" + label + "'");
}

}  // namespace memwall
