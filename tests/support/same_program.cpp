#include "tests/support/same_program.h"

#include <map>
#include <set>
#include <tuple>

namespace memwall {
namespace {

// One-to-one relation of numbers that need not be equal.
class Renaming {
 public:
  bool agrees(std::uint32_t a, std::uint32_t b) {
    return there_.try_emplace(a, b).first->second == b && back_.try_emplace(b, a).first->second == a;
  }

 private:
  std::map<std::uint32_t, std::uint32_t> there_, back_;
};

bool has_event(const Op& op) {
  return op.kind == OpKind::event_record || op.kind == OpKind::event_wait || op.wait_for == WaitFor::event;
}

bool has_places(const Op& op) { return op.kind == OpKind::copy || op.kind == OpKind::storage_io; }

auto plain_fields(const Op& op) {
  return std::tuple(
      std::tie(op.kind, op.phase, op.origin, op.wait_for, op.graph_member, op.placed, op.inferred, op.added, op.thread,
               op.stream, op.host_gap, op.host_cost, op.return_delay, op.duration, op.bytes, op.flops),
      std::tie(op.waves, op.source, op.use_count, op.operator_class, op.data_type, op.collective, op.pageable,
               op.kernels, op.framework_calls, op.dispatch, op.error_permille));
}

auto named_fields(const Trace& t, const Op& op) {
  return std::tuple(t.strings[op.name], t.strings[op.operator_name], t.strings[op.module], t.shapes[op.shape],
                    has_places(op) ? t.places[op.from] : "", has_places(op) ? t.places[op.to] : "");
}

auto fields(const Trace& t, const Storage& s) {
  return std::tuple(s.bytes, s.kind, t.places[s.place], s.stream, t.strings[s.label], t.shapes[s.shape], s.preexisting,
                    s.pinned);
}

auto fields(const ReplayConstants& c) {
  return std::tuple(std::vector(std::begin(c.launch_latency), std::end(c.launch_latency)),
                    std::vector(&c.stream_gap[0][0], &c.stream_gap[0][0] + kLaunchKinds * kLaunchKinds), c.graph_gap,
                    c.event_latency, c.launch_queue_depth);
}

ProcessGroup group_of(const Trace& t, const Op& op) {
  return op.group < t.groups.size() ? t.groups[op.group] : ProcessGroup{};
}

bool ops_agree(const Trace& a, const Trace& b, OpId id, Renaming& events, Renaming& groups) {
  const Op &x = a.ops[id], &y = b.ops[id];
  if (plain_fields(x) != plain_fields(y) || named_fields(a, x) != named_fields(b, y)) return false;
  if (has_event(x) ? !events.agrees(x.target, y.target) : x.target != y.target) return false;
  if (x.kind == OpKind::collective) {
    const ProcessGroup g = group_of(a, x), h = group_of(b, y);
    if (!groups.agrees(x.group, y.group) ||
        std::tie(g.name, g.ranks, g.members) != std::tie(h.name, h.ranks, h.members))
      return false;
  }
  for (std::uint32_t i = 0; i < x.use_count; ++i) {
    const Use &u = a.uses_of(x)[i], &v = b.uses_of(y)[i];
    if (std::tie(u.storage, u.version, u.access, u.saved) != std::tie(v.storage, v.version, v.access, v.saved))
      return false;
  }
  return true;
}

}  // namespace

std::string program_difference(const Trace& a, const Trace& b) {
  if (std::tie(a.name, a.machine, a.ranks, a.job_ranks, a.samples_per_step, a.tokens_per_step, a.untracked_bytes,
               a.reserved_at_start) != std::tie(b.name, b.machine, b.ranks, b.job_ranks, b.samples_per_step,
                                                b.tokens_per_step, b.untracked_bytes, b.reserved_at_start))
    return "a single value differs";
  if (std::multiset<std::string>(a.notes.begin(), a.notes.end()) !=
      std::multiset<std::string>(b.notes.begin(), b.notes.end()))
    return "the notes differ";
  if (fields(a.constants) != fields(b.constants)) return "the constants differ";
  if (a.ops.size() != b.ops.size() || a.storages.size() != b.storages.size() || a.threads.size() != b.threads.size() ||
      a.streams.size() != b.streams.size() || a.steps.size() != b.steps.size())
    return "the sizes differ";
  Renaming events, groups;
  for (OpId id = 0; id < a.ops.size(); ++id)
    if (!ops_agree(a, b, id, events, groups)) return "op " + std::to_string(id) + " differs";
  for (StorageId s = 0; s < a.storages.size(); ++s)
    if (fields(a, a.storages[s]) != fields(b, b.storages[s])) return "storage " + std::to_string(s) + " differs";
  for (std::size_t i = 0; i < a.threads.size(); ++i)
    if (std::tie(a.threads[i].name, a.threads[i].rank) != std::tie(b.threads[i].name, b.threads[i].rank))
      return "thread " + std::to_string(i) + " differs";
  for (std::size_t i = 0; i < a.streams.size(); ++i) {
    const Stream &s = a.streams[i], &r = b.streams[i];
    if (std::tie(s.name, s.device, s.role, s.rank) != std::tie(r.name, r.device, r.role, r.rank))
      return "stream " + std::to_string(i) + " differs";
  }
  for (std::size_t i = 0; i < a.steps.size(); ++i)
    if (std::tie(a.steps[i].name, a.steps[i].first, a.steps[i].last) !=
        std::tie(b.steps[i].name, b.steps[i].first, b.steps[i].last))
      return "step " + std::to_string(i) + " differs";
  return "";
}

}  // namespace memwall
