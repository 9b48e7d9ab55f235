#include "models/workload/graft/lone_work.h"

#include <algorithm>

namespace memwall {
namespace {

constexpr std::uint32_t kNoEvent = 0xffffffff;

Op edge(OpKind kind, std::uint32_t event, std::uint16_t thread, std::uint16_t stream) {
  Op op;
  op.kind = kind;
  op.target = event;
  op.thread = thread;
  op.stream = stream;
  op.inferred = true;
  op.origin = Origin::modelled;
  return op;
}

}  // namespace

LoneWork::LoneWork(const Trace& measured, const Trace& complete, const std::vector<LinePair>& pairs,
                   const std::vector<std::uint16_t>& streams)
    : c_(complete),
      awaited_(complete.ops.size()),
      is_recorded_(complete.ops.size(), false),
      event_(complete.ops.size(), kNoEvent) {
  std::vector<bool> is_alone(complete.ops.size(), true);
  std::vector<std::uint16_t> stream_of(complete.ops.size(), 0);
  for (OpId id = 0; id < complete.ops.size(); ++id) stream_of[id] = streams[complete.ops[id].stream];
  for (const LinePair& pair : pairs)
    for (const OpId id : pair.complete) {
      is_alone[id] = false;
      stream_of[id] = measured.ops[pair.measured.back()].stream;
    }
  find_awaited(is_alone, stream_of);
}

void LoneWork::find_awaited(const std::vector<bool>& is_alone, const std::vector<std::uint16_t>& stream_of) {
  std::vector<OpId> writer(c_.storages.size(), kNoOp);
  std::vector<std::vector<OpId>> readers(c_.storages.size());  // since it was written
  const auto await = [&](OpId id, OpId other) {
    if (other == kNoOp || stream_of[other] == stream_of[id] || (!is_alone[id] && !is_alone[other])) return;
    if (std::ranges::any_of(awaited_[id], [&](const Awaited& a) { return a.op == other; })) return;
    awaited_[id].push_back({other, stream_of[other]});
    if (is_alone[other]) is_recorded_[other] = true;
  };
  for (OpId id = 0; id < c_.ops.size(); ++id) {
    if (!is_device_line(c_.ops[id].kind)) continue;
    for (const Use& use : c_.uses_of(c_.ops[id])) {
      await(id, writer[use.storage]);
      if (use.access == Access::write)
        for (const OpId reader : readers[use.storage]) await(id, reader);
    }
    for (const Use& use : c_.uses_of(c_.ops[id])) {
      if (use.access == Access::read) {
        readers[use.storage].push_back(id);
      } else {
        writer[use.storage] = id;
        readers[use.storage].clear();
      }
    }
  }
}

// What is measured has no record of its own: one of its stream, as it stands now, is behind it, too.
void LoneWork::before(OpId complete, std::uint16_t thread, std::uint16_t stream, TraceBuilder& builder) {
  std::vector<std::uint16_t> recorded;  // streams
  for (const Awaited& awaited : awaited_[complete]) {
    std::uint32_t event = event_[awaited.op];
    if (event == kNoEvent) {
      if (std::ranges::find(recorded, awaited.stream) != recorded.end()) continue;
      recorded.push_back(awaited.stream);
      event = builder.add_event();
      builder.append(edge(OpKind::event_record, event, thread, awaited.stream));
    }
    builder.append(edge(OpKind::event_wait, event, thread, stream));
  }
  awaited_[complete].clear();  // of several measured lines that it is, the first waits
}

void LoneWork::behind(OpId complete, std::uint16_t thread, std::uint16_t stream, TraceBuilder& builder) {
  if (!is_recorded_[complete] || event_[complete] != kNoEvent) return;
  event_[complete] = builder.add_event();
  builder.append(edge(OpKind::event_record, event_[complete], thread, stream));
}

}  // namespace memwall
