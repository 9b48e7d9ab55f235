// Whatever the network, the ranks and the settings: is the split trace sound, and are its bytes what N ranks need?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "sim/engine/simulation.h"
#include "sim/error.h"
#include "sim/policy/registry.h"
#include "sim/trace/trace_check.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/layer_trace.h"
#include "tests/support/live_bytes.h"
#include "tests/support/races.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct Case {
  LayerShape shape;
  int stage = 0, ranks = 2;
  std::string policy;
};

template <typename T>
T wide(T low, T high) {
  return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange<T>(low, high));
}

Case any_case() {
  Case c;
  c.shape.parameter_bytes.clear();
  const int layers = wide(1, 12);
  // At least three elements: a state of up to 8 bytes is taken for a scalar (a step counter), which every rank keeps.
  for (int i = 0; i < layers; ++i) c.shape.parameter_bytes.push_back(2 * wide<Bytes>(3, 5000));
  c.shape.passes = wide(1, 4);
  c.shape.steps = wide(1, 3);
  c.shape.modules = *rc::gen::arbitrary<bool>();
  c.stage = wide(0, 4);
  c.ranks = wide(2, 20);
  c.policy = "zero:stage=" + std::to_string(c.stage) + ",ranks=" + std::to_string(c.ranks) +
             ",bucket_bytes=" + std::to_string(wide<Bytes>(1, 40'000)) + ",overlap=" + std::to_string(wide(0, 2)) +
             ",prefetch=" + std::to_string(wide(0, 2)) +
             ",reuse_distance=" + std::to_string(wide<Bytes>(0, 2) * wide<Bytes>(0, 60'000));
  return c;
}

Trace split(const Case& c, const Trace& trace) {
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  return apply_rewriters(trace, {parse_policy(c.policy)}, machine, *pricer);
}

Bytes total(const Trace& trace, StorageKind kind) { return of(live_bytes(trace).front(), kind); }

// Between a rank's even part and that plus one element's padding for each storage.
void require_part(Bytes part, Bytes whole, int ranks, std::size_t storages, Bytes element) {
  RC_ASSERT(part * ranks >= whole);
  RC_ASSERT(part * ranks < whole + static_cast<Bytes>(storages) * element * ranks);
}

RC_GTEST_PROP(ZeroProperty, PartsOfAllRanksMakeTheWhole, ()) {
  const Case c = any_case();
  RC_LOG(c.policy);
  const Trace trace = layer_trace(c.shape), result = split(c, trace);
  RC_ASSERT(check(result).empty());
  RC_ASSERT(races(result).empty());
  const std::size_t layers = c.shape.parameter_bytes.size();
  if (c.stage >= 1)
    require_part(total(result, StorageKind::optimizer_state), total(trace, StorageKind::optimizer_state), c.ranks, 1,
                 4);
  else
    RC_ASSERT(total(result, StorageKind::optimizer_state) == total(trace, StorageKind::optimizer_state));
  if (c.stage == 3)
    require_part(total(result, StorageKind::parameter), total(trace, StorageKind::parameter), c.ranks, layers, 2);
  else
    RC_ASSERT(total(result, StorageKind::parameter) == total(trace, StorageKind::parameter));
}

// A ring sends (N-1)/N of every message, twice for an all-reduce; padding is at most N elements per tensor.
RC_GTEST_PROP(ZeroProperty, EveryGradientAndParameterTravelsOnce, ()) {
  const Case c = any_case();
  RC_LOG(c.policy);
  const Trace trace = layer_trace(c.shape), result = split(c, trace);
  const Bytes parameters = total(trace, StorageKind::parameter);
  Bytes reduced = 0, gathered = 0;
  for (const Op& op : result.ops) {
    if (op.kind != OpKind::collective) continue;
    (op.collective == CollectiveKind::all_gather ? gathered : reduced) += op.bytes;
  }
  const auto require_sent = [&](Bytes bytes, double least, double most) {
    const double share = (c.ranks - 1.0) / c.ranks;
    const double padding = 2.0 * c.ranks * static_cast<double>(c.shape.parameter_bytes.size()) * 2;
    const auto whole = static_cast<double>(parameters);
    // The test pricer rounds each message down to a multiple of N before it sends.
    const double rounding = 2.0 * c.ranks * static_cast<double>(c.shape.parameter_bytes.size()) * most;
    RC_ASSERT(static_cast<double>(bytes) >= least * whole * share - rounding);
    RC_ASSERT(static_cast<double>(bytes) <= most * (whole + padding) * share);
  };
  const int steps = c.shape.steps, passes = c.shape.passes * steps;
  if (c.stage == 0) require_sent(reduced, 2.0 * steps, 2.0 * steps);
  if (c.stage == 1) require_sent(reduced, steps, steps);
  if (c.stage >= 2) require_sent(reduced, passes, passes);
  if (c.stage == 0) RC_ASSERT(gathered == 0);
  if (c.stage == 1 || c.stage == 2) require_sent(gathered, steps, steps);
  // At least once per step (kept all the time), at most before each forward and each backward.
  if (c.stage == 3) require_sent(gathered, steps, 2.0 * passes);
}

// Re-runs of a split step: every op computes what it computed, no stream overtakes another, no parameter stays whole,
// and each unit's parameters travel at most once more.
RC_GTEST_PROP(ZeroProperty, ReRunsFindTheirParameters, ()) {
  GptShape shape;
  shape.layers = wide(1, 7);
  shape.steps = wide(1, 3);
  Case c = any_case();
  c.policy = "zero:stage=3,ranks=" + std::to_string(c.ranks) + ",overlap=" + std::to_string(wide(0, 2)) +
             ",prefetch=" + std::to_string(wide(0, 2)) +
             ",reuse_distance=" + std::to_string(wide<Bytes>(0, 2) * wide<Bytes>(0, 12'000));
  const std::string checkpoint = "checkpoint:" +
                                 *rc::gen::element<std::string>("mode=full", "every=2", "every=3", "mode=sqrt",
                                                                "ops=gelu+add", "modules=layers.*.mlp+layers.*.norm1") +
                                 ",early_stop=" + std::to_string(wide(0, 2)) +
                                 ",last=" + (wide(0, 2) == 0 ? "keep" : "recompute");
  RC_LOG(c.policy + " " + checkpoint);
  Trace trace = gpt_step(shape);
  if (wide(0, 4) == 0 && checkpoint.find("modules") == checkpoint.npos) trace.knowledge.modules = false;
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  const Trace plain = split(c, trace);
  Trace result;
  try {
    result = apply_rewriters(trace, {parse_policy(c.policy), parse_policy(checkpoint)}, machine, *pricer);
  } catch (const UsageError&) {
    RC_DISCARD("nothing to re-run");
  }
  RC_ASSERT(check(result) == std::vector<std::string>{});
  RC_ASSERT(races(result) == std::vector<std::string>{});
  RC_ASSERT(total(result, StorageKind::parameter) == of(live_bytes(result).back(), StorageKind::parameter));
  const std::vector<std::uint64_t> hashes = producer_hashes(result);
  for (OpId id = 0; id < result.ops.size(); ++id)
    if (result.ops[id].source != kNoOp) RC_ASSERT(hashes[id] == hashes[result.ops[id].source]);
  const auto gathered = [](const Trace& t) {
    Bytes bytes = 0;
    for (const Op& op : t.ops) bytes += op.collective == CollectiveKind::all_gather ? op.bytes : 0;
    return bytes;
  };
  RC_ASSERT(gathered(result) >= gathered(plain));
  RC_ASSERT(gathered(result) <= 2 * gathered(plain));
  SimulationOptions options;
  RC_ASSERT(simulate(result, machine, options).fits);
}

// Nothing that the split adds is left over, and it runs: gradients and buffers are given back.
RC_GTEST_PROP(ZeroProperty, NothingIsLeftBehind, ()) {
  const Case c = any_case();
  RC_LOG(c.policy);
  const Trace trace = layer_trace(c.shape), result = split(c, trace);
  const LiveBytes end = live_bytes(result).back();
  RC_ASSERT(of(end, StorageKind::communication_buffer) == 0);
  RC_ASSERT(of(end, StorageKind::gradient) == 0);
  RC_ASSERT(of(end, StorageKind::parameter) == total(result, StorageKind::parameter));
  SimulationOptions options;
  const Machine machine = test_machine();
  const SimulationResult run = simulate(result, machine, options);
  RC_ASSERT(run.fits);
  // Compute alone takes this long; the optimizer's part shrinks with the ranks.
  Duration kernels{};
  for (const Op& op : result.ops)
    if (op.kind == OpKind::kernel && !op.added) kernels += op.duration;
  RC_ASSERT(run.gpu_span >= kernels);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
