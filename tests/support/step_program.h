// Small training steps written down op by op, for tests of rewriters. Threads "main" and "autograd",
// stream "compute"; kernels of 1 us unless said otherwise; calls cost nothing on the host.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "sim/trace/trace_builder.h"

namespace memwall {

class StepProgram {
 public:
  StepProgram() {
    Trace& t = builder_.trace();
    t.name = "small step";
    t.knowledge = {true, true, true, true, true};
    builder_.add_thread("main");
    builder_.add_thread("autograd");
    builder_.add_stream("compute", StreamRole::compute);
    t.place("hbm");
    begin_step();
  }

  void begin_step() {
    close_step();
    if (!builder_.trace().ops.empty()) {
      hand_over(0);
      phase_ = Phase::unknown;
    }
    Op op = here(OpKind::mark);
    first_ = builder_.append(op);
    open_ = true;
    phase_ = Phase::forward;
  }
  void backward() {
    phase_ = Phase::backward;
    hand_over(1);
  }
  void forward() {  // again, within the step: gradient accumulation
    phase_ = Phase::forward;
    hand_over(0);
  }
  void optimizer() {
    phase_ = Phase::optimizer;
    hand_over(0);
  }
  void module(const std::string& path) { module_ = path; }
  void on_stream(std::uint16_t stream) { stream_ = stream; }

  StorageId preexisting(Bytes bytes, StorageKind kind, const std::string& label) {
    return builder_.add_storage(bytes, kind, "hbm", label, true);
  }
  StorageId make(Bytes bytes, const std::string& label, StorageKind kind = StorageKind::activation) {
    const StorageId id = builder_.add_storage(bytes, kind, "hbm", label);
    Op op = here(OpKind::alloc);
    op.target = id;
    builder_.append(op);
    return id;
  }
  OpId drop(StorageId id) {
    Op op = here(OpKind::free);
    op.target = id;
    return builder_.append(op);
  }
  // An op that reads and writes; a storage in both lists is changed in place. `change` sets what differs.
  OpId op(const std::string& name, const std::vector<StorageId>& reads, const std::vector<StorageId>& writes,
          Op change = {}) {
    std::vector<Use> uses;
    for (const StorageId id : reads) uses.push_back({id, TraceBuilder::kLatest, Access::read});
    for (const StorageId id : writes) uses.push_back({id, 0, Access::write});
    Op op = here(change.kind == OpKind::mark ? OpKind::kernel : change.kind);
    op.operator_name = builder_.trace().strings.intern("aten::" + name);
    op.name = builder_.trace().strings.intern(name + "_kernel");
    op.duration = change.duration.count() != 0 ? change.duration : microseconds(1);
    op.wait_for = change.wait_for;
    op.collective = change.collective;
    op.graph_member = change.graph_member;
    op.from = change.from;
    op.to = change.to;
    return builder_.append(op, uses);
  }
  // Autograd keeps these for the backward of the op before; what it writes, as it is then.
  void saves(const std::vector<StorageId>& storages) {
    Trace& t = builder_.trace();
    const Op& last = t.ops.back();
    for (const StorageId id : storages)
      for (std::uint32_t i = last.use_count; i-- > 0;) {
        Use& use = t.uses[last.first_use + i];
        if (use.storage != id) continue;
        use.saved = true;
        break;
      }
  }
  Op here(OpKind kind) {
    Op op;
    op.kind = kind;
    op.phase = phase_;
    op.thread = thread_;
    op.stream = stream_;
    op.module = builder_.trace().strings.intern(module_);
    return op;
  }

  TraceBuilder& builder() { return builder_; }
  Trace finish() && {
    close_step();
    return std::move(builder_).finish();
  }

 private:
  void hand_over(std::uint16_t thread) {
    const OpId last = static_cast<OpId>(builder_.trace().ops.size() - 1);
    if (thread == thread_) return;
    thread_ = thread;
    Op op = here(OpKind::hand_over);
    op.target = last;
    builder_.append(op);
  }
  void close_step() {
    if (!open_) return;
    const std::string name = "step " + std::to_string(builder_.trace().steps.size());
    builder_.trace().steps.push_back({name, first_, static_cast<OpId>(builder_.trace().ops.size())});
  }

  TraceBuilder builder_;
  Phase phase_ = Phase::unknown;
  std::uint16_t thread_ = 0, stream_ = 0;
  std::string module_;
  OpId first_ = 0;
  bool open_ = false;
};

}  // namespace memwall
