#include "policies/parallel/stage_writer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace memwall {
namespace {

struct Unit {
  bool backward = false;
  std::int64_t pass = 0;
};

// 1F1B: min(p - i - 1, m) forward passes first, then one of each in turn; GPipe: all forward passes first.
std::vector<Unit> units_of(StageSchedule schedule, std::int64_t stages, std::int64_t passes, std::int64_t stage) {
  const std::int64_t warm_up = schedule == StageSchedule::gpipe ? passes : std::min(stages - stage - 1, passes);
  std::vector<Unit> units;
  for (std::int64_t k = 0; k < warm_up; ++k) units.push_back({false, k});
  for (std::int64_t k = 0; k < passes; ++k) {
    if (warm_up + k < passes) units.push_back({false, warm_up + k});
    units.push_back({true, k});
  }
  return units;
}

class StageWriter {
 public:
  StageWriter(const Trace& trace, const PipelineStages& stages, const std::vector<StageMessage>& messages,
              const Machine& machine, const Pricer& pricer, std::int64_t stage)
      : old_(trace),
        stages_(stages),
        messages_(messages),
        machine_(machine),
        pricer_(pricer),
        stage_(stage),
        mask_(StageMask{1} << stage),
        builder_(TraceBuilder::like(trace)),
        renewed_(trace.ops.size(), kNoOp),
        last_use_(trace.storages.size(), kNoOp),
        alive_(trace.storages.size(), false) {}

  Trace write(StageSchedule schedule) {
    prepare();
    mark(old_.steps.front().name, false);
    const std::vector<Unit> units = units_of(schedule, stages_.stages(), stages_.passes(), stage_);
    exchange(nullptr, &units.front());
    for (std::size_t i = 0; i < units.size(); ++i) {
      mark(std::string(units[i].backward ? kBackwardMark : kForwardMark) + std::to_string(stage_), units[i].backward);
      for (const OpId id : ops_of_[{units[i].backward, units[i].pass}]) emit_op(id, units[i]);
      exchange(&units[i], i + 1 < units.size() ? &units[i + 1] : nullptr);
    }
    meet_all();
    mark(std::string(kUpdateMark), true);
    emit_update();
    Trace trace = std::move(builder_).finish();
    trace.steps.push_back({old_.steps.front().name, 0, static_cast<OpId>(trace.ops.size())});
    if (stage_ != 0) trace.samples_per_step = trace.tokens_per_step = 0;
    return trace;
  }

 private:
  bool is_mine(OpId id) const { return (stages_.of_op(id) & mask_) != 0; }
  bool uses_here(StorageId s) const { return (stages_.of_storage(s) & mask_) != 0; }
  bool crosses(StorageId s) const { return (stages_.of_storage(s) & (stages_.of_storage(s) - 1)) != 0; }

  void prepare() {
    Trace& t = builder_.trace();
    t.steps.clear();
    for (StorageId s = 0; s < old_.storages.size(); ++s)
      if (old_.storages[s].preexisting && !uses_here(s)) {
        t.storages[s].preexisting = false;
        t.storages[s].bytes = 0;
      } else if (old_.storages[s].preexisting) {
        alive_[s] = true;
      }
    // Both directions of a batched call with one peer go on side by side.
    for (const char* const name : {"pipeline, to next", "pipeline, from next", "pipeline, to previous",
                                   "pipeline, from previous"})
      streams_.push_back(builder_.add_stream(name, StreamRole::communication));
    for (OpId id = 0; id < old_.ops.size(); ++id) {
      if (is_mine(id))
        for (const Use& use : old_.uses_of(old_.ops[id])) last_use_[use.storage] = id;
      const bool in_pass = stages_.run(id) != RunKind::optimizer;
      if (in_pass) ops_of_[{stages_.run(id) == RunKind::backward, stages_.pass(id)}].push_back(id);
    }
  }

  void mark(const std::string& name, bool backward) {
    Op op;
    op.kind = OpKind::mark;
    op.origin = Origin::modelled;
    op.phase = backward ? Phase::backward : Phase::forward;
    op.name = builder_.trace().strings.intern(name);
    builder_.append(op);
  }

  // One call for what the pass before has made and what the next one needs, as in Megatron-LM and
  // torch.distributed.pipelining; the compute stream waits for all of it.
  void exchange(const Unit* before, const Unit* next) {
    const auto is_of = [](const StageMessage& m, const Unit* unit) {
      return unit != nullptr && m.backward == unit->backward && m.pass == unit->pass;
    };
    std::vector<const StageMessage*> out, in;
    for (const StageMessage& m : messages_) {
      if (m.from == stage_ && is_of(m, before)) out.push_back(&m);
      if (m.to == stage_ && is_of(m, next)) in.push_back(&m);
    }
    for (const StageMessage* m : out) send(*m);
    for (const StageMessage* m : in) receive(*m);
    for (const StageMessage* m : out) hand_over(stream_of(*m, true), kCompute);
    for (const StageMessage* m : in) hand_over(stream_of(*m, false), kCompute);
    for (const StageMessage* m : out) drop(*m);
  }

  std::uint16_t stream_of(const StageMessage& m, bool send) const {
    if (send) return streams_[m.to > stage_ ? 0 : 2];
    return streams_[m.from > stage_ ? 1 : 3];
  }

  void emit_op(OpId id, const Unit& unit) {
    const Op& op = old_.ops[id];
    if (op.kind == OpKind::alloc) return;  // before the first use
    if (op.kind == OpKind::free) {
      // What is freed in a later pass lived until then only by the order of passes.
      if (uses_here(op.target) && alive_[op.target] && !crosses(op.target)) free(op.target, phase_of(unit));
      return;
    }
    if (op.kind == OpKind::hand_over || (op.kind == OpKind::mark && id == old_.steps.front().first) || !is_mine(id))
      return;
    append(id, op, old_.uses_of(op));
    // A message that nobody needs here any more.
    for (const Use& use : old_.uses_of(op))
      if (crosses(use.storage) && last_use_[use.storage] == id && alive_[use.storage] && !is_sent_later(use.storage, unit) &&
          !builder_.trace().storages[use.storage].preexisting)
        free(use.storage, op.phase);
  }

  bool is_sent_later(StorageId s, const Unit& unit) const {
    return std::any_of(messages_.begin(), messages_.end(), [&](const StageMessage& m) {
      return m.storage == s && m.from == stage_ && m.backward == unit.backward && m.pass == unit.pass;
    });
  }

  void emit_update() {
    for (OpId id = 0; id < old_.ops.size(); ++id) {
      if (stages_.run(id) != RunKind::optimizer) continue;
      const Op& op = old_.ops[id];
      if (op.kind == OpKind::alloc) continue;
      if (op.kind == OpKind::free) {
        if (uses_here(op.target) && alive_[op.target]) free(op.target, Phase::optimizer);
        continue;
      }
      if (op.kind == OpKind::hand_over || !is_mine(id)) continue;
      emit_share(id, op);
    }
  }

  // Of an op that touches storages of several stages this stage's, and its part of the time.
  void emit_share(OpId id, Op op) {
    std::vector<Use> uses;
    double all = 0, own = 0;
    for (const Use& use : old_.uses_of(op)) {
      const auto bytes = static_cast<double>(old_.storages[use.storage].bytes);
      all += bytes;
      if (!uses_here(use.storage)) continue;
      own += bytes;
      uses.push_back(use);
    }
    const double share = all > 0 ? own / all : 1;
    if (share < 1) {
      op.bytes = std::llround(static_cast<double>(op.bytes) * share);
      op.flops *= share;
      op.waves = static_cast<float>(op.waves * share);
      op.duration = from_picoseconds(static_cast<double>(op.duration.count()) * share);
      op.kernels = static_cast<std::uint16_t>(std::max(1.0, std::round(op.kernels * share)));
      op.shape = 0;
      if (op.origin == Origin::measured) op.origin = Origin::transferred;
    }
    append(id, op, uses);
  }

  void append(OpId id, Op op, std::span<const Use> uses) {
    for (const Use& use : uses) ensure_alive(use.storage, op.phase);
    op.thread = 0;
    if (op.source != kNoOp) op.source = renewed_[op.source];
    if (op.source == kNoOp && op.phase == Phase::recompute) op.phase = Phase::backward;
    renewed_[id] = builder_.append_renewed(op, uses);
  }

  void ensure_alive(StorageId s, Phase phase) {
    if (alive_[s]) return;
    alive_[s] = true;
    lifetime(OpKind::alloc, s, phase);
  }

  void free(StorageId s, Phase phase) {
    alive_[s] = false;
    lifetime(OpKind::free, s, phase);
  }

  void lifetime(OpKind kind, StorageId s, Phase phase) {
    Op op;
    op.kind = kind;
    op.target = s;
    op.phase = phase;
    op.origin = Origin::modelled;
    op.stream = old_.storages[s].stream;
    op.host_cost = machine_.host.allocator_call;
    builder_.append(op);
  }

  static Phase phase_of(const Unit& unit) { return unit.backward ? Phase::backward : Phase::forward; }

  void append(const StageMessage& m, bool send) {
    const std::uint16_t stream = stream_of(m, send);
    Op op;
    op.kind = OpKind::collective;
    op.collective = CollectiveKind::send_receive;
    op.stream = stream;
    op.origin = Origin::modelled;
    op.added = true;
    op.phase = m.backward ? Phase::backward : Phase::forward;
    op.name = op.operator_name = builder_.trace().strings.intern(send ? "c10d::send" : "c10d::recv_");
    op.target = m.rendezvous;
    op.group = group_of(send ? m.to : m.from);
    op.host_cost = machine_.host.launch;
    op.bytes = send ? old_.storages[m.storage].bytes : 0;
    op.duration = send ? pricer_.collective(CollectiveKind::send_receive, op.bytes, builder_.trace().groups[op.group])
                       : Duration{};
    const Use use{m.storage, 0, send ? Access::read : Access::write};
    builder_.append_renewed(op, {&use, 1});
  }

  // By numbers of stages: of_job() makes them numbers of ranks.
  std::uint16_t group_of(std::int64_t other) {
    auto& groups = builder_.trace().groups;
    const auto low = static_cast<std::uint32_t>(std::min(stage_, other));
    for (std::size_t i = 0; i < groups.size(); ++i)
      if (groups[i].name == kNeighbours && groups[i].members == std::vector<std::uint32_t>{low, low + 1})
        return static_cast<std::uint16_t>(i);
    groups.push_back({kNeighbours, 2, {low, low + 1}});
    return static_cast<std::uint16_t>(groups.size() - 1);
  }

  void hand_over(std::uint16_t from, std::uint16_t to) {
    const std::uint32_t event = builder_.add_event();
    Op op;
    op.origin = Origin::modelled;
    op.kind = OpKind::event_record;
    op.target = event;
    op.stream = from;
    op.host_cost = machine_.host.event_call;
    builder_.append(op);
    op.kind = OpKind::event_wait;
    op.stream = to;
    builder_.append(op);
  }

  // The norm of all gradients, a number that all stages wait for before they update.
  void meet_all() {
    auto& groups = builder_.trace().groups;
    std::vector<std::uint32_t> members(static_cast<std::size_t>(stages_.stages()));
    std::iota(members.begin(), members.end(), 0u);
    groups.push_back({kAllStages, static_cast<std::uint32_t>(members.size()), std::move(members)});
    Op op;
    op.kind = OpKind::collective;
    op.collective = CollectiveKind::all_reduce;
    op.stream = builder_.add_stream("all stages", StreamRole::communication);
    op.origin = Origin::modelled;
    op.added = true;
    op.phase = Phase::backward;
    op.name = op.operator_name = builder_.trace().strings.intern("c10d::allreduce_");
    op.target = static_cast<std::uint32_t>(messages_.size());
    op.group = static_cast<std::uint16_t>(groups.size() - 1);
    op.data_type = DataType::fp32;
    op.host_cost = machine_.host.launch;
    const Bytes number = bytes_of(DataType::fp32);
    op.bytes = pricer_.wire_bytes(CollectiveKind::all_reduce, number, static_cast<std::uint32_t>(stages_.stages()));
    op.duration = pricer_.collective(CollectiveKind::all_reduce, number, groups.back());
    hand_over(kCompute, op.stream);
    builder_.append_renewed(op, {});
    hand_over(op.stream, kCompute);
  }

  void receive(const StageMessage& m) {
    ensure_alive(m.storage, m.backward ? Phase::backward : Phase::forward);
    hand_over(kCompute, stream_of(m, false));  // as PyTorch's process groups do for every call
    append(m, false);
  }

  void send(const StageMessage& m) {
    hand_over(kCompute, stream_of(m, true));
    append(m, true);
  }

  // What has left and is read here no more.
  void drop(const StageMessage& m) {
    const OpId last = last_use_[m.storage];
    const bool read_later = last != kNoOp && stages_.run(last) == RunKind::backward && !m.backward;
    if (!read_later && alive_[m.storage]) free(m.storage, m.backward ? Phase::backward : Phase::forward);
  }

  const Trace& old_;
  const PipelineStages& stages_;
  const std::vector<StageMessage>& messages_;
  const Machine& machine_;
  const Pricer& pricer_;
  const std::int64_t stage_;
  const StageMask mask_;
  TraceBuilder builder_;
  std::vector<std::uint16_t> streams_;
  static constexpr std::uint16_t kCompute = 0;
  std::map<std::pair<bool, std::int64_t>, std::vector<OpId>> ops_of_;
  std::vector<OpId> renewed_, last_use_;
  std::vector<bool> alive_;
};

}  // namespace

Trace stage_of_pipeline(const Trace& one, const PipelineStages& stages, const std::vector<StageMessage>& messages,
                        const Machine& machine, const Pricer& pricer, StageSchedule schedule, std::int64_t stage) {
  return StageWriter(one, stages, messages, machine, pricer, stage).write(schedule);
}

}  // namespace memwall
