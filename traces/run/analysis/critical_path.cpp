#include "traces/run/analysis/critical_path.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

#include "sim/trace/group_names.h"
#include "sim/trace/ranks.h"
#include "traces/run/analysis/run_scan.h"

namespace memwall {
namespace {

// Where the walk stands: at which side of which op, looking back from the cursor.
enum class At : std::uint8_t {
  device_work,   // the op was at work on its stream until the cursor
  device_start,  // it started at the cursor: why not earlier?
  launch,        // its call put it on the stream at the cursor
  call,          // its call returned at the cursor
  call_start,    // its call began at the cursor
  nowhere
};

// Host work that waits for the device first: the record holds its end only, so the device op that it
// waited for is found again from the program, by the rules of docs/engine.md: the last to end of those that
// the stream or event stands behind. Per op.
std::vector<OpId> find_awaited(const Run& run) {
  const std::vector<Op>& ops = run.trace->ops;
  std::vector<OpId> awaited(ops.size(), kNoOp);
  // What each stands behind: of the ops that a stream waits for only the last to end can decide, and it stays the
  // last whatever is added.
  std::vector<OpId> stream(run.trace->streams.size(), kNoOp);
  std::unordered_map<std::uint32_t, OpId> event;  // a file may count more events than it has ops
  const auto of_event = [&](std::uint32_t number) {
    const auto found = event.find(number);
    return found == event.end() ? kNoOp : found->second;
  };
  const auto later = [&](OpId first, OpId second) {
    if (first == kNoOp || second == kNoOp) return first == kNoOp ? second : first;
    return run.result.records[second].end > run.result.records[first].end ? second : first;
  };
  for (OpId id = 0; id < ops.size(); ++id) {
    const Op& op = ops[id];
    if (runs_on_device(op.kind) && op.kind != OpKind::graph_launch) stream[op.stream] = id;
    if (op.kind == OpKind::event_record) event[op.target] = stream[op.stream];
    if (op.kind == OpKind::event_wait) stream[op.stream] = later(stream[op.stream], of_event(op.target));
    if (op.kind != OpKind::host_work) continue;
    if (op.wait_for == WaitFor::stream) awaited[id] = stream[op.stream];
    if (op.wait_for == WaitFor::event) awaited[id] = of_event(op.target);
    if (op.wait_for == WaitFor::device)
      for (std::size_t s = 0; s < stream.size(); ++s)
        if (run.trace->streams[s].rank == run.trace->threads[op.thread].rank)
          awaited[id] = later(awaited[id], stream[s]);
  }
  return awaited;
}

bool has_host_work(const Trace& trace) {
  return std::any_of(trace.ops.begin(), trace.ops.end(), [](const Op& op) { return op.kind == OpKind::host_work; });
}

class Walk {
 public:
  static constexpr std::uint32_t kAllRanks = 0xffffffff;

  // kAllRanks: wherever the path leads. `awaited`: as find_awaited(run) gives, empty where no host work is; must
  // outlive the walk.
  Walk(const Run& run, std::uint32_t rank, Time end, const std::vector<OpId>& awaited)
      : run_(run), ops_(run.trace->ops), records_(run.result.records), rank_(rank), cursor_(end), awaited_(awaited) {}

  // From the op that ended last, which the survey knows. REQUIRES: all ranks.
  std::vector<PathSegment> segments(const PathSurvey& survey) {
    if (survey.last_work() != kNoOp)
      go(At::device_work, survey.last_work());
    else if (survey.last_call() != kNoOp)
      go(At::call, survey.last_call());
    return walk();
  }

  // From the op of the rank that ended last.
  std::vector<PathSegment> segments() {
    find_last();
    return walk();
  }

 private:
  std::vector<PathSegment> walk() {
    segments_.reserve(2 * ops_.size());  // most runs have fewer; what is not written takes no memory
    // Every visit of an op is one of five; a run whose causes form a circle (only a damaged one can) stops here.
    const std::size_t limit = 5 * ops_.size() + 8;
    for (std::size_t i = 0; i < limit && at_ != At::nowhere && cursor_.count() > 0; ++i) step();
    add(Time{}, kNoOp, TimeClass::idle, PathPart::wait);
    std::reverse(segments_.begin(), segments_.end());
    return std::move(segments_);
  }

  void go(At at, OpId op) {
    const bool known = op < records_.size();
    at_ = known ? at : At::nowhere;
    op_ = op;
  }

  // Everything from `begin` to the cursor; the cursor moves there.
  void add(Time begin, OpId op, TimeClass time_class, PathPart part) {
    begin = std::max(begin, Time{});
    if (begin >= cursor_) return;
    segments_.push_back({begin, cursor_, op, time_class, part});
    cursor_ = begin;
  }

  void find_last() {
    for (OpId id = 0; id < records_.size(); ++id) {
      if (rank_ != kAllRanks && rank_of(run_.trace, ops_[id]) != rank_) continue;
      if (records_[id].end == cursor_) return go(At::device_work, id);
      if (records_[id].host_end == cursor_) go(At::call, id);
    }
  }

  void step() {
    switch (at_) {
      case At::device_work:
        return step_device_work();
      case At::device_start:
        return step_device_start();
      case At::launch:
        return step_launch();
      case At::call:
        return step_call();
      case At::call_start:
        return step_call_start();
      case At::nowhere:
        return;
    }
  }

  void step_device_work() {
    const OpId peer = records_[op_].peer;
    if (peer < records_.size()) {
      add(records_[peer].start, op_, device_class(ops_[op_]), PathPart::work);
      if (rank_ == kAllRanks) return go(At::device_start, peer);
      add(records_[op_].start, op_, device_class(ops_[op_]), PathPart::wait);
    }
    add(records_[op_].start, op_, device_class(ops_[op_]), PathPart::work);
    go(At::device_start, op_);
  }

  void step_device_start() {
    const OpRecord& record = records_[op_];
    switch (record.device_reason) {
      case WaitReason::launch:
        return go(At::launch, op_);
      case WaitReason::page_fault:
        return step_fault();
      default:
        break;
    }
    if (record.device_cause >= records_.size()) return go(At::nowhere, kNoOp);
    add(records_[record.device_cause].end, op_, TimeClass::host, PathPart::latency);
    go(At::device_work, record.device_cause);
  }

  // The record does not say what the op would have waited for without the fault: it is taken to be its
  // predecessor in the stream or its launch, whichever was later.
  void step_fault() {
    if (previous_.empty()) find_previous();
    const OpId previous = previous_[op_];
    const OpRecord& record = records_[op_];
    const Time launched = std::min(record.host_end, cursor_);
    const bool after_previous = previous != kNoOp && records_[previous].end >= launched;
    add(after_previous ? records_[previous].end : launched, op_, TimeClass::fault, PathPart::wait);
    go(after_previous ? At::device_work : At::launch, after_previous ? previous : op_);
  }

  void step_launch() {
    const Op& op = ops_[op_];
    if (op.placed) return step_placed();
    if (op.wait_for == WaitFor::own_op) {  // its call goes on after the start: only the part before counts
      add(records_[op_].host_start, op_, TimeClass::host, PathPart::call);
      return go(At::call_start, op_);
    }
    add(records_[op_].host_end, op_, TimeClass::host, PathPart::latency);
    go(At::call, op_);
  }

  // Launched before the window, so that nobody knows what it waited for: at least for what its stream did before it.
  void step_placed() {
    if (previous_.empty()) find_previous();
    const OpId previous = previous_[op_];
    if (previous == kNoOp) {
      add(Time{}, op_, TimeClass::idle, PathPart::latency);
      return go(At::nowhere, kNoOp);
    }
    add(records_[previous].end, op_, TimeClass::idle, PathPart::latency);
    go(At::device_work, previous);
  }

  void step_call() {
    const Op& op = ops_[op_];
    const OpRecord& record = records_[op_];
    const bool allocates = op.kind == OpKind::alloc || op.kind == OpKind::free;
    const TimeClass own = allocates ? TimeClass::allocator : TimeClass::host;
    OpId awaited = kNoOp;
    if (record.host_end_waited) {
      if (record.host_end_reason == WaitReason::memory) {
        add(record.host_start, op_, TimeClass::allocator, PathPart::wait);
        return go(At::call_start, op_);
      }
      if (record.host_end_reason == WaitReason::launch_queue && record.host_end_cause < records_.size()) {
        add(records_[record.host_end_cause].start, op_, TimeClass::host, PathPart::call);
        return go(At::device_start, record.host_end_cause);
      }
      awaited = record.host_end_cause;
    } else if (op.kind == OpKind::host_work) {
      awaited = awaited_[op_];
    }
    if (awaited < records_.size() && records_[awaited].end > record.host_start && records_[awaited].start <= cursor_) {
      const bool works = op.kind == OpKind::host_work;
      add(records_[awaited].end, op_, own, works ? PathPart::call : PathPart::latency);
      return go(At::device_work, awaited);
    }
    add(record.host_start, op_, own, PathPart::call);
    go(At::call_start, op_);
  }

  void step_call_start() {
    const OpRecord& record = records_[op_];
    if (record.host_cause >= records_.size()) {
      // The thread's first op: the time before it is its own host gap.
      add(record.host_reason == WaitReason::none ? Time{} : cursor_, op_, TimeClass::host, PathPart::gap);
      return go(At::nowhere, kNoOp);
    }
    add(records_[record.host_cause].host_end, op_, TimeClass::host, PathPart::gap);
    go(At::call, record.host_cause);
  }

  void find_previous() {
    std::vector<OpId> started;
    for (OpId id = 0; id < records_.size(); ++id)
      if (records_[id].start != kNever) started.push_back(id);
    std::sort(started.begin(), started.end(), [&](OpId a, OpId b) {
      return std::tie(records_[a].start, records_[a].end, a) < std::tie(records_[b].start, records_[b].end, b);
    });
    previous_.assign(ops_.size(), kNoOp);
    std::vector<OpId> last(run_.trace->streams.size(), kNoOp);
    for (const OpId id : started) {
      previous_[id] = last[ops_[id].stream];
      last[ops_[id].stream] = id;
    }
  }

  const Run& run_;
  const std::vector<Op>& ops_;
  const std::vector<OpRecord>& records_;
  const std::uint32_t rank_;
  Time cursor_;
  At at_ = At::nowhere;
  OpId op_ = kNoOp;
  std::vector<PathSegment> segments_;  // latest first
  const std::vector<OpId>& awaited_;   // of host_work; empty if there is none
  std::vector<OpId> previous_;         // in the stream; found at the first page fault
};

}  // namespace

std::string_view to_string(TimeClass c) {
  static constexpr std::string_view words[] = {"compute",   "recompute", "copy", "collective", "storage",
                                               "allocator", "fault",     "host", "idle"};
  const auto i = static_cast<std::size_t>(c);
  return i < std::size(words) ? words[i] : "?";
}

std::string_view to_string(PathPart part) {
  static constexpr std::string_view words[] = {"work", "call", "gap", "latency", "wait"};
  const auto i = static_cast<std::size_t>(part);
  return i < std::size(words) ? words[i] : "?";
}

TimeClass device_class(const Op& op) {
  switch (op.kind) {
    case OpKind::kernel:
    case OpKind::memset:
      return op.phase == Phase::recompute ? TimeClass::recompute : TimeClass::compute;
    case OpKind::copy:
      return TimeClass::copy;
    case OpKind::collective:
      return TimeClass::collective;
    case OpKind::storage_io:
      return TimeClass::storage;
    default:
      return TimeClass::host;
  }
}

namespace {

// Is it of a group over which a model is divided?
bool divides(const Trace& trace, const Op& collective) {
  if (collective.collective == CollectiveKind::send_receive) return true;
  return collective.group < trace.groups.size() && trace.groups[collective.group].name == kTensorParallelGroup;
}

}  // namespace

void PathSurvey::add(OpId first, OpId last) {
  const Trace& trace = run_.trace;
  const std::vector<OpRecord>& records = run_.result.records;
  const Time end = run_.result.end;
  for (OpId id = first; id < last; ++id) {
    const Op& op = trace.ops[id];
    has_host_work_ |= op.kind == OpKind::host_work;
    host_updates_ |= op.kind == OpKind::host_work && op.operator_class == OperatorClass::optimizer;
    if (op.kind == OpKind::collective && !meets_) deepspeed_ = trace.strings[op.name].starts_with("deepspeed.");
    meets_ |= op.kind == OpKind::collective;
    gathers_ |= op.kind == OpKind::collective && op.collective == CollectiveKind::all_gather;
    is_divided_ |= op.kind == OpKind::collective && divides(trace, op);
    has_device_op_ |= runs_on_device(op.kind);
    has_other_origin_ |= runs_on_device(op.kind) && op.origin != Origin::modelled;
    if (id >= records.size()) continue;
    add_busy_time(op, records[id]);
    if (records[id].end == end && last_work_ == kNoOp) last_work_ = id;
    if (records[id].host_end == end) last_call_ = id;
  }
}

// Ops of a thread do not overlap, and stand in its order. As core_use() counts a thread.
void PathSurvey::add_busy_time(const Op& op, const OpRecord& record) {
  if (op.placed || record.host_start == kNever || record.host_end == kNever) return;
  if (op.kind == OpKind::host_work && op.bytes > 0) return;  // on the host's memory
  if (op.thread >= threads_.size()) threads_.resize(op.thread + 1u);
  Thread& thread = threads_[op.thread];
  const Time begin = std::max(thread.end, record.host_start - std::max(Duration{}, op.host_gap));
  const Duration length = record.host_end - record.host_start;
  const Duration own = record.host_end_waited ? std::min(length, op.host_cost) : length;
  const Time end = record.host_start + std::max(Duration{}, own);
  thread.busy += std::max(Duration{}, end - begin);
  thread.end = std::max(thread.end, end);
}

double PathSurvey::busiest_thread() const {
  Duration most{};
  for (const Thread& thread : threads_) most = std::max(most, thread.busy);
  const Duration all = run_.result.end - Time{};
  return all.count() > 0 ? std::min(1.0, to_seconds(most) / to_seconds(all)) : 0;
}

JobKind PathSurvey::job() const {
  if (host_updates_) return JobKind::offloaded;
  if (!meets_) return JobKind::one_gpu;
  if (is_divided_) return JobKind::model_parallel;
  if (deepspeed_) return JobKind::deepspeed;
  return gathers_ ? JobKind::sharded : JobKind::data_parallel;
}

std::vector<PathSegment> critical_path(const Run& run, const PathSurvey& survey) {
  const std::vector<OpId> awaited = survey.has_host_work() ? find_awaited(run) : std::vector<OpId>();
  return Walk(run, Walk::kAllRanks, run.result.end, awaited).segments(survey);
}

std::vector<PathSegment> critical_path(const Run& run) {
  PathSurvey survey(run);
  scan(run, survey);
  return critical_path(run, survey);
}

std::vector<PathSegment> critical_path_of_rank(const Run& run, std::uint16_t rank) {
  if (rank_count(run.trace) == 1) return critical_path(run);
  const std::vector<OpId> awaited = has_host_work(run.trace) ? find_awaited(run) : std::vector<OpId>();
  return Walk(run, rank, rank_ends(run)[rank], awaited).segments();
}

std::vector<std::vector<PathSegment>> critical_paths_of_ranks(const Run& run) {
  if (rank_count(run.trace) == 1) return {critical_path(run)};
  const std::vector<OpId> awaited = has_host_work(run.trace) ? find_awaited(run) : std::vector<OpId>();
  const std::vector<Time> ends = rank_ends(run);
  std::vector<std::vector<PathSegment>> paths;
  for (std::uint16_t rank = 0; rank < ends.size(); ++rank)
    paths.push_back(Walk(run, rank, ends[rank], awaited).segments());
  return paths;
}

}  // namespace memwall
