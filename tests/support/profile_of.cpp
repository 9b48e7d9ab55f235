#include "tests/support/profile_of.h"

#include "sim/trace/trace_builder.h"

namespace memwall {
namespace {

bool is_line(const Op& op) { return op.kind != OpKind::alloc && op.kind != OpKind::free; }

// Ops renumbered; those that are gone are kNoOp.
Trace renumbered(const Trace& from, Trace to, const std::vector<OpId>& new_id) {
  const auto place = [&](OpId id) {
    while (id < new_id.size() && new_id[id] == kNoOp) ++id;
    return id < new_id.size() ? new_id[id] : static_cast<OpId>(to.ops.size());
  };
  for (Op& op : to.ops) {
    if (op.kind == OpKind::hand_over) {
      OpId target = op.target;  // the thread's last line before that is still there
      while (new_id[target] == kNoOp || from.ops[target].thread != from.ops[op.target].thread) --target;
      op.target = new_id[target];
    }
    if (op.source != kNoOp) op.source = new_id[op.source];
  }
  to.steps.clear();
  for (const Step& step : from.steps) to.steps.push_back({step.name, place(step.first), place(step.last)});
  return to;
}

}  // namespace

Trace with_end_marks(Trace step) {
  for (std::uint16_t thread = 0; thread < step.threads.size(); ++thread) {
    Op mark;
    mark.thread = thread;
    mark.name = step.strings.intern("end");
    mark.phase = step.ops.back().phase;
    mark.first_use = static_cast<std::uint32_t>(step.uses.size());
    step.ops.push_back(mark);
  }
  if (!step.steps.empty()) step.steps.back().last = static_cast<OpId>(step.ops.size());
  return step;
}

Trace profile_of(const Trace& step) {
  Trace profile = step;
  profile.ops.clear();
  profile.uses.clear();
  profile.storages.clear();
  profile.knowledge = {.timing = true};
  std::vector<OpId> new_id(step.ops.size(), kNoOp);
  std::vector<Duration> open(step.threads.size(), Duration{});
  for (OpId id = 0; id < step.ops.size(); ++id) {
    Op op = step.ops[id];
    Duration& before = open[op.thread];
    if (!is_line(op)) {
      before += op.host_gap + op.host_cost;
      continue;
    }
    op.host_gap += before;
    before = Duration{};
    op.module = 0, op.shape = 0, op.first_use = 0, op.use_count = 0, op.flops = 0, op.source = kNoOp;
    if (op.kind == OpKind::kernel) op.bytes = 0;
    new_id[id] = static_cast<OpId>(profile.ops.size());
    profile.ops.push_back(op);
  }
  return renumbered(step, std::move(profile), new_id);
}

Trace without_lines(const Trace& profile, const std::vector<bool>& leaves_out) {
  Trace result = profile;
  result.ops.clear();
  std::vector<OpId> new_id(profile.ops.size(), kNoOp);
  for (OpId id = 0; id < profile.ops.size(); ++id) {
    if (leaves_out[id]) continue;
    new_id[id] = static_cast<OpId>(result.ops.size());
    result.ops.push_back(profile.ops[id]);
  }
  return renumbered(profile, std::move(result), new_id);
}

}  // namespace memwall
