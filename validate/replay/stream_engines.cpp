#include "validate/replay/stream_engines.h"

#include <string>

#include "sim/error.h"

namespace memwall {
namespace {

std::string op_text(const Trace& schedule, OpId id) {
  const Op& op = schedule.ops[id];
  const std::string& name = schedule.strings[op.name];
  return "op " + std::to_string(id) + " (" + std::string(to_string(op.kind)) +
         (name.empty() ? "" : " \"" + name + "\"") + ")";
}

}  // namespace

std::vector<StreamEngine> stream_engines(const Trace& schedule) {
  std::vector<OpId> storage(schedule.streams.size(), kNoOp), device(schedule.streams.size(), kNoOp);
  for (OpId id = 0; id < schedule.ops.size(); ++id) {
    const Op& op = schedule.ops[id];
    if (!runs_on_device(op.kind)) continue;
    OpId& first = (op.kind == OpKind::storage_io ? storage : device).at(op.stream);
    if (first == kNoOp) first = id;
  }
  std::vector<StreamEngine> engines;
  for (std::size_t s = 0; s < schedule.streams.size(); ++s) {
    const Stream& stream = schedule.streams[s];
    if (storage[s] != kNoOp && device[s] != kNoOp)
      throw UsageError("The stream \"" + stream.name + "\" (number " + std::to_string(s) + ") of the schedule holds " +
                       op_text(schedule, storage[s]) + " and " + op_text(schedule, device[s]) +
                       "; the back end \"cuda\" expects storage ops on streams of their own.");
    const bool by_role = device[s] == kNoOp && stream.role == StreamRole::storage;
    engines.push_back(storage[s] != kNoOp || by_role ? StreamEngine::storage : StreamEngine::device);
  }
  return engines;
}

}  // namespace memwall
