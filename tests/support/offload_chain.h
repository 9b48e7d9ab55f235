// Small training steps written by hand, for tests of offload: one thread, one compute stream, every
// kernel 100 ms, on the test machine (1 GB over PCIe = 100 ms).
#pragma once

#include <string>
#include <vector>

#include "sim/error.h"
#include "sim/policy/registry.h"
#include "sim/engine/simulation.h"
#include "sim/trace/trace_builder.h"
#include "tests/support/test_machine.h"

namespace memwall {

inline constexpr Bytes kGB = 1'000'000'000;

inline std::string numbered(char letter, int number) { return std::string(1, letter).append(std::to_string(number)); }

constexpr Duration milliseconds(std::int64_t n) { return microseconds(1000 * n); }

struct Chain {
  TraceBuilder b;

  Chain() {
    b.trace().name = "chain";
    b.trace().knowledge = {true, true, true, false, false};
    b.trace().constants.event_latency = Duration{};
    b.add_thread("main");
    b.add_stream("compute", StreamRole::compute);
    Op mark;
    b.append(mark);
  }

  StorageId make(Bytes bytes, StorageKind kind, Phase phase, const std::string& label) {
    const StorageId id = b.add_storage(bytes, kind, "hbm", label);
    Op op;
    op.kind = OpKind::alloc;
    op.target = id;
    op.phase = phase;
    b.append(op);
    return id;
  }

  void drop(StorageId id, Phase phase) {
    Op op;
    op.kind = OpKind::free;
    op.target = id;
    op.phase = phase;
    b.append(op);
  }

  void kernel(Phase phase, const std::vector<StorageId>& reads, const std::vector<StorageId>& writes,
              Duration duration = milliseconds(100)) {
    std::vector<Use> uses;
    for (const StorageId id : reads) uses.push_back({id, TraceBuilder::kLatest, Access::read});
    for (const StorageId id : writes) uses.push_back({id, 0, Access::write});
    Op op;
    op.kind = OpKind::kernel;
    op.phase = phase;
    op.duration = duration;
    b.append(op, uses);
  }

  Trace finish() {
    b.trace().steps = {{"step", 0, static_cast<OpId>(b.trace().ops.size())}};
    return std::move(b).finish();
  }
};

// f1 .. fn make one activation each and read the one before; bn .. b1 read one each and free it.
inline Trace activation_chain(int layers, Bytes bytes = kGB) {
  Chain c;
  std::vector<StorageId> a;
  for (int i = 0; i < layers; ++i) {
    a.push_back(c.make(bytes, StorageKind::activation, Phase::forward, numbered('a', i + 1)));
    c.kernel(Phase::forward, i > 0 ? std::vector{a[i - 1]} : std::vector<StorageId>{}, {a[i]});
  }
  for (int i = layers - 1; i >= 0; --i) {
    c.kernel(Phase::backward, {a[i]}, {});
    c.drop(a[i], Phase::backward);
  }
  return c.finish();
}

// One or more layers of a parameter, its gradient, and Adam's states; 4 bytes per element of a
// parameter, or 2 with an fp32 master copy; or states of `state_ratio` times the parameter's bytes. Forward in order,
// backward in reverse, then Adam.
inline Trace training_step(int layers, Bytes parameter_bytes, bool half, int state_ratio = 0) {
  if (state_ratio == 0) state_ratio = half ? 6 : 2;
  Chain c;
  std::vector<StorageId> p, g, m;
  for (int i = 0; i < layers; ++i) {
    p.push_back(c.b.add_storage(parameter_bytes, StorageKind::parameter, "hbm", numbered('p', i), true));
    m.push_back(
        c.b.add_storage(parameter_bytes * state_ratio, StorageKind::optimizer_state, "hbm", numbered('m', i), true));
  }
  for (int i = 0; i < layers; ++i) c.kernel(Phase::forward, {p[i]}, {});
  g.resize(layers);
  for (int i = layers - 1; i >= 0; --i) {
    g[i] = c.make(parameter_bytes, StorageKind::gradient, Phase::backward, numbered('g', i));
    c.kernel(Phase::backward, {p[i]}, {g[i]});
  }
  for (int i = 0; i < layers; ++i) c.kernel(Phase::optimizer, {p[i], g[i], m[i]}, {p[i], m[i]}, milliseconds(50));
  for (int i = 0; i < layers; ++i) c.drop(g[i], Phase::optimizer);
  Trace t = c.finish();
  if (half)
    for (Op& op : t.ops) op.data_type = DataType::bf16;
  return t;
}

inline Trace offloaded(const Trace& trace, const std::string& policy, const Machine& machine = test_machine()) {
  return apply_rewriters(trace, {parse_policy(policy)}, machine, *test_pricer(machine));
}

inline SimulationResult run(const Trace& trace, const Machine& machine = test_machine()) {
  SimulationOptions options;
  options.allocator = "ideal";
  return simulate(trace, machine, options);
}

inline Bytes link_bytes(const SimulationResult& result, const Machine& machine, const std::string& name) {
  return result.links[machine.link(name)].bytes;
}
inline Bytes peak(const SimulationResult& result, const Machine& machine, const std::string& tier) {
  return result.tiers[machine.tier(tier)].peak_usage.requested;  // pinned memory is rounded up to a power of two
}

inline std::string refusal(const Trace& trace, const std::string& policy, const Machine& machine = test_machine()) {
  try {
    offloaded(trace, policy, machine);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace memwall
