// Whatever the network, the ranks and the settings: are fsdp's volumes its formulas, and its buffers as few as
// PyTorch's?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>

#include "sim/engine/simulation.h"
#include "sim/policy/registry.h"
#include "sim/trace/trace_check.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/layer_trace.h"
#include "tests/support/live_bytes.h"
#include "tests/support/races.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

template <typename T>
T wide_value(T low, T high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<T>(low, high));
}

struct FsdpCase {
  LayerShape shape;
  int version = 2, shards = 2, replicas = 1;
  bool reduces_each_pass = true, wide = false;
  bool reshards = true, limits = true;
  int forward_shards = 1;  // of version 2: between forward and backward
  std::string policy;
};

FsdpCase any_fsdp_case() {
  FsdpCase c;
  c.shape.parameter_bytes.clear();
  const int layers = wide_value(2, 12);  // one module alone is no repeated block
  for (int i = 0; i < layers; ++i) c.shape.parameter_bytes.push_back(2 * wide_value<Bytes>(5, 5000));
  c.shape.passes = wide_value(1, 4);
  c.shape.steps = wide_value(1, 3);
  c.version = wide_value(1, 3);
  c.replicas = wide_value(0, 3) == 0 ? wide_value(2, 4) : 1;
  c.shards = 2 * wide_value(1, 9);
  c.reduces_each_pass = wide_value(0, 2) == 0;
  c.wide = wide_value(0, 2) == 0;
  const auto number = [](int n) { return std::to_string(n); };
  c.policy = "fsdp:version=" + number(c.version) + ",ranks=" + number(c.shards * c.replicas) +
             ",replicate=" + number(c.replicas) + ",accumulation=" + (c.reduces_each_pass ? "sync" : "no_sync") +
             (c.wide ? ",reduce_dtype=fp32" : "") + ",hook_us=" + number(wide_value(0, 2) * wide_value(0, 20));
  if (c.version == 2) {
    const int after = wide_value(0, 4);  // 0: no, 1: yes, 2: over two ranks, 3: as by default
    c.reshards = after != 0;
    if (after < 3) c.policy += ",reshard_after_forward=" + number(after);
    if (after == 2 && c.shards > 2) c.forward_shards = 2;
  } else {
    c.reshards = wide_value(0, 3) > 0;
    c.limits = wide_value(0, 3) > 0;
    const std::string strategy = std::string(c.replicas > 1 ? "hybrid" : "full");
    c.policy += ",strategy=" + (c.reshards ? strategy : c.replicas > 1 ? "hybrid_grad_op" : "grad_op");
    c.policy += ",limit_all_gathers=" + number(c.limits) + ",forward_prefetch=" + number(wide_value(0, 2)) +
                ",backward_prefetch=" + *rc::gen::element<std::string>("pre", "post", "none");
  }
  return c;
}

Trace rewritten_by(const std::vector<std::string>& policies, const Trace& trace) {
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  std::vector<PolicySpec> specs;
  for (const std::string& policy : policies) specs.push_back(parse_policy(policy));
  return apply_rewriters(trace, specs, machine, *pricer);
}

Bytes sent_by(const Trace& trace, CollectiveKind kind) {
  Bytes bytes = 0;
  for (const Op& op : trace.ops)
    if (op.kind == OpKind::collective && op.collective == kind) bytes += op.bytes;
  return bytes;
}

int most_alive(const Trace& trace, const std::string& label) {
  int most = 0, now = 0;
  for (const Op& op : trace.ops) {
    if (op.kind != OpKind::alloc && op.kind != OpKind::free) continue;
    if (trace.strings[trace.storages[op.target].label] != label) continue;
    now += op.kind == OpKind::alloc ? 1 : -1;
    most = std::max(most, now);
  }
  return most;
}

// Each layer is a unit of one parameter, padded to a multiple of the shards.
Bytes padded(const FsdpCase& c, Bytes element) {
  Bytes bytes = 0;
  for (const Bytes parameter : c.shape.parameter_bytes)
    bytes += (parameter / 2 + c.shards - 1) / c.shards * c.shards * element;
  return bytes;
}

RC_GTEST_PROP(FsdpProperty, VolumesAreTheFormulas, ()) {
  const FsdpCase c = any_fsdp_case();
  RC_LOG(c.policy);
  const Trace result = rewritten_by({c.policy}, layer_trace(c.shape));
  RC_ASSERT(check(result) == std::vector<std::string>{});
  RC_ASSERT(races(result) == std::vector<std::string>{});
  const Bytes steps = c.shape.steps, passes = steps * c.shape.passes;
  const Bytes S = c.shards, whole = padded(c, 2), reduced = padded(c, c.wide ? 4 : 2);
  const Bytes reductions = c.reduces_each_pass ? passes : steps;
  RC_ASSERT(sent_by(result, CollectiveKind::reduce_scatter) == reductions * (reduced / S * (S - 1)));
  const Bytes R = c.replicas;
  Bytes summed = 0;
  for (const Bytes parameter : c.shape.parameter_bytes)
    summed += 2 * ((parameter / 2 + S - 1) / S * (c.wide ? 4 : 2) / R) * (R - 1);
  RC_ASSERT(sent_by(result, CollectiveKind::all_reduce) == reductions * summed);
  // Forward's, and backward's where forward has given back. FSDP1 keeps what is whole over passes that don't reduce.
  Bytes gathered = passes * (whole / S * (S - 1));
  if (c.reshards && c.forward_shards == 1) gathered *= 2;
  if (c.forward_shards == 2) gathered += passes * (whole / 2);
  if (c.version == 1 && !c.reshards && !c.reduces_each_pass) gathered = steps * (whole / S * (S - 1));
  RC_ASSERT(sent_by(result, CollectiveKind::all_gather) == gathered);
}

RC_GTEST_PROP(FsdpProperty, BuffersAndFreesAreLimited, ()) {
  const FsdpCase c = any_fsdp_case();
  RC_LOG(c.policy);
  const Trace result = rewritten_by({c.policy}, layer_trace(c.shape));
  if (c.version == 2) {
    RC_ASSERT(most_alive(result, "fsdp.all_gather_output") <= 2);
    RC_ASSERT(most_alive(result, "fsdp.reduce_scatter_input") <= 1);
  } else if (c.limits) {
    // The host waits before a gather where two frees or more are queued, for one of them, and nowhere else.
    int queued = 0, waits = 0;
    for (const Op& op : result.ops) {
      queued += op.kind == OpKind::free && op.wait_for == WaitFor::stream &&
                result.strings[result.storages[op.target].label] == "fsdp.flat_parameter";
      waits += op.kind == OpKind::synchronize;
      if (op.collective != CollectiveKind::all_gather) continue;
      RC_ASSERT(waits == (queued >= 2 ? 1 : 0));
      queued -= waits;
      waits = 0;
      const bool ahead = c.policy.find("forward_prefetch=1") != std::string::npos || c.shape.passes * c.shape.steps > 1;
      RC_ASSERT(ahead || queued <= 1);
    }
  }
  const LiveBytes end = live_bytes(result).back();
  RC_ASSERT(of(end, StorageKind::communication_buffer) == 0);
  RC_ASSERT(of(end, StorageKind::gradient) == 0);
  const Bytes state = model_state(live_bytes(result).front());
  RC_ASSERT(of(end, StorageKind::parameter) + of(end, StorageKind::optimizer_state) == state);
  const SimulationResult run = simulate(result, test_machine(), {});
  RC_ASSERT(run.fits);
  RC_ASSERT(run.tiers[0].peak_allocated >= state);
}

// Re-runs of a sharded step find what they read, and gather each unit at most once more.
RC_GTEST_PROP(FsdpProperty, ReRunsFindTheirParameters, ()) {
  GptShape shape;
  shape.layers = wide_value(2, 7);
  shape.steps = wide_value(1, 3);
  const FsdpCase c = any_fsdp_case();
  const std::string checkpoint =
      "checkpoint:" + *rc::gen::element<std::string>("mode=full", "every=2", "every=3", "mode=sqrt", "ops=gelu+add");
  RC_LOG(c.policy + " " + checkpoint);
  const Trace trace = gpt_step(shape);
  const Trace plain = rewritten_by({c.policy}, trace), result = rewritten_by({c.policy, checkpoint}, trace);
  RC_ASSERT(check(result) == std::vector<std::string>{});
  RC_ASSERT(races(result) == std::vector<std::string>{});
  const std::vector<std::uint64_t> hashes = producer_hashes(result);
  for (OpId id = 0; id < result.ops.size(); ++id)
    // What is cut anew after forward is gathered from another tensor, which holds the same.
    if (result.ops[id].source != kNoOp && c.forward_shards == 1) RC_ASSERT(hashes[id] == hashes[result.ops[id].source]);
  RC_ASSERT(sent_by(result, CollectiveKind::all_gather) >= sent_by(plain, CollectiveKind::all_gather));
  RC_ASSERT(sent_by(result, CollectiveKind::all_gather) <= 2 * sent_by(plain, CollectiveKind::all_gather));
  RC_ASSERT(sent_by(result, CollectiveKind::reduce_scatter) == sent_by(plain, CollectiveKind::reduce_scatter));
  RC_ASSERT(of(live_bytes(result).back(), StorageKind::communication_buffer) == 0);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
