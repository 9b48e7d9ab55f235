#include "validate/replay/dataflow_waits.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/trace/trace_builder.h"
#include "validate/replay/happened_before.h"

namespace memwall {
namespace {

class DataflowWaits {
 public:
  explicit DataflowWaits(const Trace& trace)
      : t_(trace), order_(trace), history_(trace.storages.size()), awaited_(trace.ops.size()) {}

  // For each op, the streams that it has to wait for.
  std::vector<std::set<std::uint16_t>> run() {
    for (OpId id = 0; id < t_.ops.size(); ++id) {
      const Op& op = t_.ops[id];
      if (runs_on_device(op.kind) && !op.added) await(id);
      if (const auto work = order_.enter(id)) note(op, *work);
    }
    return std::move(awaited_);
  }

 private:
  struct User {
    std::size_t lane = 0;
    std::uint32_t index = 0;
    bool added = false;
  };
  // Of the present content of a storage.
  struct History {
    std::vector<User> writer, readers;  // of the writer one at most
  };

  void await(OpId id) {
    const Op& op = t_.ops[id];
    for (const Use& use : t_.uses_of(op)) {
      const History& history = history_[use.storage];
      for (const User& user : history.writer) await(id, user);
      if (use.access == Access::read) continue;
      for (const User& user : history.readers) await(id, user);
    }
  }

  void await(OpId id, const User& user) {
    const Op& op = t_.ops[id];
    if (user.added || user.lane >= t_.streams.size() || order_.before(op)[user.lane] >= user.index) return;
    const auto other = static_cast<std::uint16_t>(user.lane);
    awaited_[id].insert(other);
    order_.wait(op.stream, other);
  }

  void note(const Op& op, const HappenedBefore::Work& work) {
    const User user{work.lane, work.index, op.added};
    for (const Use& use : t_.uses_of(op)) {
      History& history = history_[use.storage];
      if (use.access == Access::write) {
        history = {{user}, {}};
        continue;
      }
      std::erase_if(history.readers, [&](const User& reader) { return reader.lane == user.lane; });
      history.readers.push_back(user);
    }
  }

  const Trace& t_;
  HappenedBefore order_;
  std::vector<History> history_;
  std::vector<std::set<std::uint16_t>> awaited_;
};

Op event_call(OpKind kind, std::uint32_t event, std::uint16_t stream, const Op& beside) {
  Op op;
  op.kind = kind;
  op.target = event;
  op.stream = stream;
  op.thread = beside.thread;
  op.phase = beside.phase == Phase::recompute ? Phase::backward : beside.phase;
  return op;
}

}  // namespace

void add_dataflow_waits(Trace& schedule) {
  const std::vector<std::set<std::uint16_t>> awaited = DataflowWaits(schedule).run();
  std::size_t added = 0;
  for (const auto& streams : awaited) added += streams.size();
  if (added == 0) return;
  TraceBuilder builder = TraceBuilder::like(schedule);
  std::vector<OpId> moved;
  for (OpId id = 0; id < schedule.ops.size(); ++id) {
    for (const std::uint16_t stream : awaited[id]) {
      const std::uint32_t event = builder.add_event();
      builder.append(event_call(OpKind::event_record, event, stream, schedule.ops[id]));
      builder.append(event_call(OpKind::event_wait, event, schedule.ops[id].stream, schedule.ops[id]));
    }
    Op op = schedule.ops[id];
    if (op.kind == OpKind::hand_over) op.target = moved[op.target];
    if (op.source != kNoOp) op.source = moved[op.source];
    moved.push_back(builder.append(op, schedule.uses_of(schedule.ops[id])));
  }
  std::vector<Step> steps = schedule.steps;
  Trace result = std::move(builder).finish();
  for (Step& step : steps)
    for (OpId* boundary : {&step.first, &step.last})
      *boundary = *boundary < moved.size() ? moved[*boundary] : static_cast<OpId>(result.ops.size());
  result.steps = std::move(steps);
  schedule = std::move(result);
  schedule.notes.push_back("schedule: " + std::to_string(added) +
                           " waits between streams, which the capture does not show, follow from what ops use.");
}

}  // namespace memwall
