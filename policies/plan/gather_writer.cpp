#include "policies/plan/gather_writer.h"

#include <algorithm>

namespace memwall {

GatherWriter::GatherWriter(TraceEdit& edit, const Dataflow& flow, const ParameterGathers& gathers)
    : edit_(edit), t_(edit.base()), flow_(flow), gathers_(gathers) {}

void GatherWriter::begin(const PlannedRerun& rerun, std::span<const StorageId> present) {
  rerun_ = &rerun;
  present_ = present;
  sources_.clear();
  issued_.clear();
  number_of_.clear();
  read_.clear();
  next_ = 0;
  for (const OpId id : rerun.ops) {
    if (gathers_parameters(t_, t_.ops[id])) continue;
    for (const Use& use : t_.uses_of(t_.ops[id]))
      if (use.access == Access::read && gathers_.gather_of(use.storage) != kNoOp) note_reader(id, use.storage);
  }
  for (std::size_t i = 0; i < sources_.size(); ++i)
    if (sources_[i].way != Way::there) issued_.push_back(i);
  if (!issued_.empty() && gathers_.run_ahead()) issue(sources_[issued_[next_++]], point_ahead());
}

bool GatherWriter::reads_buffer(OpId gather) const {
  return std::ranges::any_of(t_.uses_of(t_.ops[gather]), [this](const Use& use) {
    return t_.storages[use.storage].kind == StorageKind::communication_buffer;
  });
}

void GatherWriter::note_reader(OpId id, StorageId storage) {
  OpId gather = gathers_.gather_of(storage);
  StorageId stands = kNoStorage;
  Way way = Way::repeated;
  if (!std::binary_search(rerun_->ops.begin(), rerun_->ops.end(), gather)) {
    stands = gathers_.stand_in(storage, position());
    if (stands == kNoStorage) stands = storage;  // kept until here
    gather = gathers_.gather_of(stands);
    way = gather < position() || moved_.contains(gather) ? Way::there : Way::moved;
    if (way == Way::moved && reads_buffer(gather)) {
      gather = gathers_.gather_of(storage);
      way = Way::repeated;
    }
  }
  const auto [found, is_new] = number_of_.try_emplace({gather, way}, sources_.size());
  if (is_new) {
    Source source;
    source.gather = gather;
    source.way = way;
    source.first = id;
    if (const auto moved = moved_.find(gather); way == Way::there && moved != moved_.end())
      source.event = moved->second;
    sources_.push_back(std::move(source));
  }
  sources_[found->second].last = id;
  read_[storage] = {found->second, stands};
}

// Beside the last gather before the re-run: it left for what stands there now, and the re-run's leaves as early.
InsertionPoint GatherWriter::point_ahead() const {
  const OpId beside = gathers_.last_before(position());
  if (beside == kNoOp) return point();
  for (const Use& use : t_.uses_of(t_.ops[sources_[issued_.front()].gather]))
    if (use.access == Access::read && (flow_.version_before(use.storage, beside) != use.version ||
                                       present_[use.storage] != use.storage))  // the plan has moved it
      return point();
  OpId first = beside;
  for (const StorageId storage : gathers_.filled_by(beside))
    if (const OpId alloc = flow_.alloc(storage); alloc != kNoOp) first = std::min(first, alloc);
  return {first, false};
}

void GatherWriter::before(OpId op) {
  const std::size_t ahead = gathers_.run_ahead() ? 1 : 0;
  while (next_ < issued_.size() && sources_[issued_[next_ - ahead]].first <= op)
    issue(sources_[issued_[next_++]], point());
  if (!runs_on_device(t_.ops[op].kind)) return;
  for (const Use& use : t_.uses_of(t_.ops[op]))
    if (const auto read = read_.find(use.storage); read != read_.end() && use.access == Access::read)
      hold(sources_[read->second.first], t_.ops[op].stream);
}

// What is freed has been read by then; the memory of a stream's pool may be handed out again only behind that.
void GatherWriter::await_readers(InsertionPoint point, std::uint16_t stream) {
  for (const std::uint16_t reader : gathers_.reading_streams())
    if (reader != stream) edit_.wait(point, edit_.record(point, reader), stream);
}

// A buffer like this one, filled as it was for `reader`; the streams follow each other.
StorageId GatherWriter::filled_again(InsertionPoint point, StorageId buffer, OpId reader,
                                     std::vector<StorageId>& temporary) {
  const Storage like = t_.storages[buffer];
  edit_.tables().storages.push_back(like);
  const auto again = static_cast<StorageId>(edit_.tables().storages.size() - 1);
  edit_.alloc(point, again);
  temporary.push_back(again);
  for (const OpId writer : flow_.writers(buffer)) {
    if (writer > reader) break;
    const Op op = t_.ops[writer];
    std::vector<Use> uses(t_.uses_of(op).begin(), t_.uses_of(op).end());
    for (Use& use : uses) {
      const StorageId original = use.storage;
      if (original == buffer)
        use.storage = again;
      else if (t_.storages[original].kind == StorageKind::communication_buffer)
        use.storage = filled_again(point, original, writer, temporary);
      else if (use.access == Access::read)
        use.storage = present_[original];
    }
    await_readers(point, op.stream);
    if (last_filled_ && *last_filled_ != op.stream) edit_.wait(point, edit_.record(point, *last_filled_), op.stream);
    edit_.insert(point, op, uses);
    last_filled_ = op.stream;
  }
  return again;
}

void GatherWriter::issue(Source& source, InsertionPoint point) {
  const Op op = t_.ops[source.gather];
  std::vector<Use> uses(t_.uses_of(op).begin(), t_.uses_of(op).end());
  std::vector<StorageId> temporary;
  last_filled_.reset();
  for (Use& use : uses)
    if (t_.storages[use.storage].kind == StorageKind::communication_buffer)
      use.storage = filled_again(point, use.storage, source.gather, temporary);
  await_readers(point, op.stream);
  if (last_filled_ && *last_filled_ != op.stream) edit_.wait(point, edit_.record(point, *last_filled_), op.stream);
  for (Use& use : uses) {
    const StorageId original = use.storage;
    if (use.access == Access::read) {
      if (original < present_.size()) use.storage = present_[original];
      continue;
    }
    if (source.way == Way::repeated) {
      const Storage like = t_.storages[original];
      edit_.tables().storages.push_back(like);
      use.storage = static_cast<StorageId>(edit_.tables().storages.size() - 1);
      source.storages.push_back(use.storage);
      if (const auto read = read_.find(original); read != read_.end()) read->second.second = use.storage;
    } else {
      const OpId alloc = flow_.alloc(original);
      if (alloc == kNoOp || alloc < position()) continue;
      edit_.remove(alloc);
    }
    edit_.alloc(point, use.storage);
  }
  edit_.insert(point, op, uses);
  source.event = edit_.record(point, op.stream);
  // What is filled next in the pools of these buffers comes behind the copy out of them.
  for (const StorageId buffer : temporary) {
    const std::uint16_t pool = edit_.tables().storages[buffer].stream;
    if (pool != op.stream) edit_.wait(point, source.event, pool);
    edit_.free(point, buffer);
  }
  if (source.way != Way::moved) return;
  edit_.remove(source.gather);
  moved_[source.gather] = source.event;
}

void GatherWriter::hold(Source& source, std::uint16_t stream) {
  const std::uint16_t own = t_.ops[source.gather].stream;
  if (!source.held.insert(stream).second || stream == own) return;
  if (source.event == kNone && waits_already(source.gather, stream)) return;
  if (source.event == kNone) source.event = event_behind(source.gather);
  if (source.event == kNone) source.event = edit_.record({source.gather, true}, own);
  edit_.wait(point(), source.event, stream);
}

// That the trace itself records before the re-run, once; kNone: there is none.
std::uint32_t GatherWriter::event_behind(OpId gather) const {
  std::uint32_t event = kNone;
  for (OpId id = gather + 1; id < position(); ++id) {
    const Op& op = t_.ops[id];
    if (op.kind != OpKind::event_record) continue;
    if (event == kNone && op.stream == t_.ops[gather].stream)
      event = op.target;
    else if (op.target == event)
      return kNone;
  }
  return event;
}

// Does the trace itself make the stream wait for the gather before the re-run?
bool GatherWriter::waits_already(OpId gather, std::uint16_t stream) const {
  std::set<std::uint32_t> behind;  // events recorded behind the gather
  for (OpId id = gather + 1; id < position(); ++id) {
    const Op& op = t_.ops[id];
    if (op.kind == OpKind::event_wait && op.stream == stream && behind.contains(op.target)) return true;
    if (op.kind != OpKind::event_record) continue;
    op.stream == t_.ops[gather].stream ? (void)behind.insert(op.target) : (void)behind.erase(op.target);
  }
  return false;
}

void GatherWriter::after(OpId op) {
  for (const Source& source : sources_)
    if (source.way == Way::repeated && source.last == op)
      for (const StorageId storage : source.storages) edit_.free(point(), storage);
}

void GatherWriter::end() {
  std::set<std::uint16_t> streams;
  for (const Source& source : sources_) {
    const std::uint16_t own = t_.ops[source.gather].stream;
    if (source.way == Way::repeated) streams.insert(own);
    // Where the gather's storages are of another stream's pool, it may have waited for earlier readers only.
    for (const StorageId storage : gathers_.filled_by(source.gather))
      if (t_.storages[storage].stream != own) streams.insert(t_.storages[storage].stream);
  }
  for (const std::uint16_t stream : streams) await_readers(point(), stream);
  rerun_ = nullptr;
}

StorageId GatherWriter::instead_of(StorageId storage) const {
  const auto read = read_.find(storage);
  if (read == read_.end()) return kNoStorage;
  const StorageId other = read->second.second;
  return other < present_.size() ? present_[other] : other;  // the plan may have moved it
}

}  // namespace memwall
