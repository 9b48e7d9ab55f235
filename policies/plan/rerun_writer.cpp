#include "policies/plan/rerun_writer.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "policies/plan/plan_timeline.h"

namespace memwall {

RerunWriter::RerunWriter(TraceEdit& edit, const Dataflow& flow, const ParameterGathers& gathers)
    : edit_(edit),
      t_(edit.base()),
      flow_(flow),
      gathers_(edit, flow, gathers),
      clone_(edit.base().storages.size(), kNoStorage) {}

void RerunWriter::leave_out(OpId id) {
  const Op& op = t_.ops[id];
  if (op.host_gap.count() == 0) return edit_.remove(id);
  Op mark;
  mark.phase = op.phase;
  mark.thread = op.thread;
  mark.host_gap = op.host_gap;
  edit_.replace(id, mark);
}

void RerunWriter::free(StorageId original, StorageId device, InsertionPoint point) {
  Op op;
  op.kind = OpKind::free;
  op.target = device;
  op.stream = t_.storages[original].stream;
  const OpId alloc = flow_.alloc(original);
  const Op& neighbour = t_.ops[point.op];
  const bool is_alone = !neighbour.graph_member && !neighbour.placed;
  const OpId program = alloc != kNoOp ? alloc : flow_.free(original);  // an op of the host program, whose thread it has
  op.thread = is_alone || program == kNoOp ? neighbour.thread : t_.ops[program].thread;
  op.phase = neighbour.phase;
  op.module = neighbour.module;
  op.origin = Origin::modelled;
  op.added = true;
  if (const OpId was = flow_.free(original); was != kNoOp) op.host_cost = t_.ops[was].host_cost;
  edit_.insert_complete(point, op);
}

bool RerunWriter::is_listed(OpId op) const { return std::binary_search(ops_.begin(), ops_.end(), op); }

bool RerunWriter::is_called(OpId op) const {
  return std::binary_search(rerun_->called.begin(), rerun_->called.end(), op);
}

bool RerunWriter::is_awaited(StorageId storage) const {
  return std::binary_search(awaited_->begin(), awaited_->end(), storage);
}

// A workspace without dataflow of its own that forward gives back at once.
bool RerunWriter::is_scratch(StorageId s) const { return flow_.touches(s).empty() && flow_.free(s) < rerun_->at.op; }

void RerunWriter::append(const Op& op, std::span<const Use> uses) { edit_.insert_complete(point(), op, uses); }

Duration RerunWriter::take_gap() { return std::exchange(gap_, Duration{}); }

std::vector<BroughtBack> RerunWriter::write(const PlannedRerun& rerun, std::span<const StorageId> present,
                                            const std::vector<StorageId>& awaited,
                                            const std::set<std::uint16_t>& readers,
                                            const std::vector<StorageId>& leaving) {
  rerun_ = &rerun;
  awaited_ = &awaited;
  thread_ = t_.ops[rerun.at.op].thread;
  gap_ = {};
  made_.clear();
  events_.clear();
  outputs_.clear();
  streams_.clear();
  ops_.clear();
  std::ranges::copy_if(rerun.ops, std::back_inserter(ops_),
                       [this](OpId id) { return !gathers_parameters(t_, t_.ops[id]); });
  if (ops_.empty()) return {};
  for (const OpId id : ops_)
    for (const Use& use : t_.uses_of(t_.ops[id]))
      if (use.access == Access::write && !t_.storages[use.storage].preexisting) outputs_.insert(use.storage);
  gathers_.begin(rerun, present);
  const std::uint16_t source_thread = t_.ops[ops_.front()].thread;
  auto next = ops_.begin();
  const OpId last = rerun.called.empty() ? ops_.back() : std::max(ops_.back(), rerun.called.back());
  place_ends(leaving, last);
  place_ends_of_seconds(present, last);
  mark_call();
  for (OpId id = first_op(); id <= last; ++id) {
    if (next != ops_.end() && *next == id) {
      ++next;
      gathers_.before(id);
      repeat(id, present);
      gathers_.after(id);
      if (runs_on_device(t_.ops[id].kind)) streams_.insert(t_.ops[id].stream);
    } else if (t_.ops[id].thread == source_thread) {
      accompany(id);
    }
    end_uses(id);
    end_seconds(id);
  }
  if (last > ops_.back()) pass_time();
  std::vector<BroughtBack> back;
  give_up_or_keep(back);
  gathers_.end();
  join_streams(back, readers);
  return back;
}

// Where the unit begins and ends with ops that are handed what they made: this says so to policies behind
// (hooked_storages.cpp).
void RerunWriter::mark_call() {
  if (rerun_->called.empty()) return;
  for (const OpId id : {rerun_->called.front(), rerun_->called.back()}) {
    if (ops_.front() <= id && id <= ops_.back()) continue;
    Op op;
    op.kind = OpKind::mark;
    op.module = t_.ops[id].module;
    op.source = id;
    repeat_call(op);
  }
}

// Behind the last op that uses it here. A result of an op that is called again, and handed out, has a name in the
// program as in its first run: it stays until the program gave it back there.
void RerunWriter::place_ends(const std::vector<StorageId>& leaving, OpId last) {
  ends_.clear();
  for (const StorageId s : leaving) {
    OpId end = ops_.front();
    for (const Touch& touch : flow_.touches(s))
      if (touch.op <= last && (is_listed(touch.op) || is_called(touch.op)))
        end = std::max(end, end_of_use(touch.op, s, last));
    const auto writers = flow_.writers(s);
    if (!writers.empty() && is_called(writers.front())) end = std::max(end, std::min(flow_.free(s), last));
    ends_.emplace(end, s);
  }
}

void RerunWriter::end_uses(OpId id) {
  const auto [begin, end] = ends_.equal_range(id);
  for (auto one = begin; one != end; ++one) free(one->second, one->second, point());
}

// Of what is still there from the first time nobody holds a second one behind the last op that reads it here.
void RerunWriter::place_ends_of_seconds(std::span<const StorageId> present, OpId last) {
  seconds_.clear();
  for (const StorageId s : outputs_) {
    const OpId freed = flow_.free(s);
    const bool is_there = present[s] != kNoStorage && (freed == kNoOp || is_behind(freed, rerun_->at));
    if (!is_there || is_awaited(s)) continue;
    OpId end = ops_.front();
    for (const OpId id : ops_)
      for (const Use& use : t_.uses_of(t_.ops[id]))
        if (use.storage == s) end = std::max(end, end_of_use(id, s, last));
    seconds_.emplace(end, s);
  }
}

// A collective keeps what it reads until the stream of its memory has waited for it (c10d's Work does): where up to
// `last` that stream first waits for an event that was recorded behind it.
OpId RerunWriter::end_of_use(OpId user, StorageId storage, OpId last) const {
  const Op& op = t_.ops[user];
  const std::uint16_t stream = t_.storages[storage].stream;
  if (op.kind != OpKind::collective || op.stream == stream) return user;
  std::set<std::uint32_t> events;
  for (OpId id = user + 1; id <= last; ++id) {
    const Op& next = t_.ops[id];
    if (next.kind == OpKind::event_record && next.stream == op.stream) events.insert(next.target);
    if (next.kind == OpKind::event_wait && next.stream == stream && events.contains(next.target)) return id;
  }
  return user;
}

void RerunWriter::end_seconds(OpId id) {
  const auto [begin, end] = seconds_.equal_range(id);
  for (auto one = begin; one != end; ++one)
    if (const StorageId clone = std::exchange(clone_[one->second], kNoStorage); clone != kNoStorage)
      free(one->second, clone, point());
}

void RerunWriter::give_up_or_keep(std::vector<BroughtBack>& back) {
  for (const StorageId s : made_) {
    if (clone_[s] == kNoStorage) continue;  // freed by the re-run
    if (is_awaited(s))
      back.push_back({s, clone_[s]});
    else
      free(s, clone_[s], point());
    clone_[s] = kNoStorage;
  }
}

// Where the re-run begins: its first op, or the allocs right before that are its own, and what a collective's stream
// waits for before it begins.
OpId RerunWriter::first_op() const {
  OpId first = ops_.front();
  if (!rerun_->called.empty() && rerun_->called.front() < first) return rerun_->called.front();
  const Op& begins = t_.ops[first];
  std::set<std::uint32_t> awaited;
  for (OpId id = first; id-- > 0;) {
    const Op& op = t_.ops[id];
    if (op.thread != begins.thread) continue;
    if (begins.kind == OpKind::collective && op.kind == OpKind::event_wait && op.stream == begins.stream) {
      awaited.insert(op.target);
      first = id;
      continue;
    }
    if (op.kind == OpKind::event_record && awaited.contains(op.target)) {
      first = id;
      continue;
    }
    if (op.kind != OpKind::alloc || !(outputs_.contains(op.target) || is_scratch(op.target))) break;
    first = id;
  }
  return first;
}

// The clone's alloc, like the original's. `like`: null where the re-run has not come by it.
void RerunWriter::alloc_clone(StorageId s, const Op* like, const Op& beside) {
  Op op;
  if (like != nullptr) {
    op = *like;
    op.host_gap += take_gap();
  } else {
    op.kind = OpKind::alloc;
    op.stream = t_.storages[s].stream;
    op.module = beside.module;
    if (const OpId was = flow_.alloc(s); was != kNoOp) op.host_cost = t_.ops[was].host_cost;
  }
  edit_.tables().storages.push_back(t_.storages[s]);
  clone_[s] = static_cast<StorageId>(edit_.tables().storages.size() - 1);
  made_.push_back(s);
  op.target = clone_[s];
  op.thread = thread_;
  op.phase = Phase::recompute;
  op.origin = Origin::modelled;
  op.added = true;
  append(op);
}

void RerunWriter::repeat(OpId id, std::span<const StorageId> present) {
  const Op& original = t_.ops[id];
  std::vector<Use> uses(t_.uses_of(original).begin(), t_.uses_of(original).end());
  for (const Use& use : uses)
    if (use.access == Access::write && outputs_.contains(use.storage) && clone_[use.storage] == kNoStorage)
      alloc_clone(use.storage, nullptr, original);
  for (Use& use : uses) {
    const OpId writer = flow_.writer(use.storage, use.version);
    const bool again = use.access == Access::write || (writer != kNoOp && is_listed(writer));
    // Of what lived before the step (running statistics) there is no second one.
    if (const StorageId gathered = gathers_.instead_of(use.storage); gathered != kNoStorage)
      use.storage = gathered;
    else
      use.storage = again && !t_.storages[use.storage].preexisting ? clone_[use.storage] : present[use.storage];
  }
  Op op = original;
  op.phase = Phase::recompute;
  op.thread = thread_;
  op.source = id;
  op.host_gap += take_gap();
  append(op, uses);
}

// What stands between the re-run ops on the host: allocs, frees, events, host work.
void RerunWriter::accompany(OpId id) {
  Op op = t_.ops[id];
  switch (op.kind) {
    case OpKind::alloc:
      if (outputs_.contains(op.target) || is_scratch(op.target)) return alloc_clone(op.target, &op, op);
      break;
    case OpKind::free:
      if (clone_[op.target] == kNoStorage || is_awaited(op.target)) break;
      op.target = std::exchange(clone_[op.target], kNoStorage);
      return repeat_call(op);
    case OpKind::event_record:
      if (op.added) break;  // what sharding ties to its gathers, which gathers_ writes
      op.target = events_[op.target] = edit_.builder().add_event();
      return repeat_call(op);
    case OpKind::event_wait:
      if (!events_.contains(op.target)) break;  // recorded before the unit: long since waited for
      op.target = events_[op.target];
      return repeat_call(op);
    case OpKind::host_work:
      op.source = id;
      return repeat_call(op);
    case OpKind::mark:
      break;
    default:
      if (!is_called(id)) return;  // device work that nobody needs again, with the time of its call
  }
  gap_ += t_.ops[id].host_gap;  // the host still comes by here
}

// The host goes on after the last op that is run again.
void RerunWriter::pass_time() {
  if (gap_.count() == 0) return;
  Op op;
  op.kind = OpKind::mark;
  repeat_call(op);
}

void RerunWriter::repeat_call(Op op) {
  op.thread = thread_;
  op.phase = Phase::recompute;
  op.host_gap += take_gap();
  op.added = op.kind != OpKind::host_work;
  append(op);
}

// Later ops of other streams wait for the re-run.
void RerunWriter::join_streams(const std::vector<BroughtBack>& back, std::set<std::uint16_t> readers) {
  for (const BroughtBack& one : back)
    for (const Touch& touch : flow_.touches(one.storage))
      if (touch.op >= rerun_->at.op && runs_on_device(t_.ops[touch.op].kind)) readers.insert(t_.ops[touch.op].stream);
  for (const std::uint16_t writer : streams_) {
    if (readers.empty() || (readers.size() == 1 && readers.contains(writer))) continue;
    const std::uint32_t event = edit_.builder().add_event();
    event_call(OpKind::event_record, event, writer);
    for (const std::uint16_t reader : readers)
      if (reader != writer) event_call(OpKind::event_wait, event, reader);
  }
}

void RerunWriter::event_call(OpKind kind, std::uint32_t event, std::uint16_t stream) {
  Op op;
  op.kind = kind;
  op.target = event;
  op.stream = stream;
  op.thread = thread_;
  op.phase = Phase::recompute;
  op.origin = Origin::modelled;
  op.added = true;
  op.host_cost = edit_.costs().event_call;
  append(op);
}

}  // namespace memwall
