// Whatever is offloaded, to wherever and how: is every byte that leaves accounted for, does every kernel
// still compute the same from the same, and is no step faster than its kernels or its links?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "sim/error.h"
#include "sim/policy/registry.h"
#include "sim/engine/simulation.h"
#include "sim/trace/trace_check.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace {

GptShape random_shape() {
  GptShape shape;
  shape.layers = *rc::gen::inRange(1, 5);
  shape.hidden = 8 * *rc::gen::inRange(1, 5);
  shape.sequence = 4 * *rc::gen::inRange(1, 5);
  shape.batch = *rc::gen::inRange(1, 4);
  shape.steps = *rc::gen::inRange(1, 3);
  shape.flash_attention = *rc::gen::arbitrary<bool>();
  shape.preexisting_gradients = *rc::gen::arbitrary<bool>();
  shape.launch_cost = nanoseconds(*rc::gen::inRange(0, 3));
  return shape;
}

// A policy that leaves every kernel on the GPU.
std::string random_policy() {
  const std::string what = *rc::gen::element<std::string>("activations", "parameters", "optimizer",
                                                          "activations+parameters", "activations+optimizer+parameters");
  const std::string to = *rc::gen::element<std::string>("host", "nvme", "peer");
  std::string text = "offload:min_bytes=" + std::to_string(*rc::gen::inRange(1, 600)) + ",what=" + what + ",to=" + to;
  if (what.find("optimizer") != std::string::npos) text += ",cpu_adam=0";
  if (to == "host" && *rc::gen::inRange(0, 4) == 0) return text + ",pinned=0";
  text +=
      ",prefetch=" + std::to_string(*rc::gen::inRange(0, 6)) + ",buffers=" + std::to_string(*rc::gen::inRange(0, 8));
  if (*rc::gen::arbitrary<bool>()) text += ",fraction=0.6";
  return text;
}

Trace rewritten(const Trace& base, const std::string& policy, const Machine& machine) {
  try {
    return apply_rewriters(base, {parse_policy(policy)}, machine, *test_pricer(machine));
  } catch (const UsageError& error) {  // nothing of that size is there
    RC_DISCARD(error.what());
  }
  return base;
}

SimulationResult run(const Trace& trace, const Machine& machine) {
  SimulationOptions options;
  options.allocator = "ideal";
  return simulate(trace, machine, options);
}

std::vector<std::uint64_t> hashes_of_originals(const Trace& trace) {
  const std::vector<std::uint64_t> all = producer_hashes(trace);
  std::vector<std::uint64_t> result;
  for (OpId id = 0; id < trace.ops.size(); ++id)
    if (runs_on_device(trace.ops[id].kind) && !trace.ops[id].added) result.push_back(all[id]);
  return result;
}

RC_GTEST_PROP(OffloadProperty, EveryKernelComputesTheSameFromTheSame, ()) {
  const Machine machine = test_machine();
  const Trace base = gpt_step(random_shape());
  const std::string policy = random_policy();
  RC_LOG() << policy;
  const Trace trace = rewritten(base, policy, machine);
  RC_ASSERT(check(trace).empty());
  RC_ASSERT(hashes_of_originals(trace) == hashes_of_originals(base));
}

RC_GTEST_PROP(OffloadProperty, LinksCarryExactlyTheCopiesAndNoStepBeatsThem, ()) {
  const Machine machine = test_machine();
  const Trace base = gpt_step(random_shape());
  const std::string policy = random_policy();
  RC_LOG() << policy;
  const Trace trace = rewritten(base, policy, machine);
  std::map<std::string, Bytes> expected;
  Duration compute{};
  for (const Op& op : trace.ops) {
    if (op.kind == OpKind::kernel || op.kind == OpKind::memset) compute += op.duration;
    if (op.kind != OpKind::copy && op.kind != OpKind::storage_io) continue;
    RC_ASSERT(op.added);
    const std::string from = trace.places[op.from], to = trace.places[op.to];
    expected[from + ">" + to] += op.bytes;
    for (const Use& use : trace.uses_of(op))  // between the places where the storages are
      RC_ASSERT(trace.storages[use.storage].place == (use.access == Access::read ? op.from : op.to));
  }
  const SimulationResult result = run(trace, machine);
  const auto carried = [&](const char* link) { return result.links[machine.link(link)].bytes; };
  RC_ASSERT(carried("pcie_d2h") == expected["hbm>host"]);
  RC_ASSERT(carried("pcie_h2d") == expected["host>hbm"]);
  RC_ASSERT(carried("nvlink_out") == expected["hbm>peer_hbm"]);
  RC_ASSERT(carried("nvlink_in") == expected["peer_hbm>hbm"]);
  RC_ASSERT(carried("nvme_write") == expected["host>nvme"]);
  RC_ASSERT(carried("nvme_read") == expected["nvme>host"]);
  RC_ASSERT(result.end >= compute);
  for (const char* link : {"pcie_d2h", "pcie_h2d", "nvlink_out", "nvlink_in", "nvme_write", "nvme_read"})
    RC_ASSERT(to_seconds(result.end) >=
              static_cast<double>(carried(link)) / machine.links[machine.link(link)].bandwidth - 1e-9);
}

// When an op's work happens, on the device or on the host.
struct Span {
  Time start{}, end{};
};
Span span(const Trace& trace, const SimulationResult& result, OpId id) {
  const OpRecord& r = result.records[id];
  return runs_on_device(trace.ops[id].kind) ? Span{r.start, r.end} : Span{r.host_start, r.host_end};
}

bool made_by_offload(const Trace& trace, OpId id) {
  const std::string& name = trace.strings[trace.ops[id].name];
  return name.starts_with("offload ") || name == "CPU Adam" || name.ends_with("optimizer states");
}

// Checks against the simulated times what the program must order by streams and events: an op starts
// after the writers of what it touches and, if it writes, after the earlier readers. Pairs that the
// offload had no part in are not its business.
void require_ordered_uses(const Trace& trace, const SimulationResult& result) {
  struct Last {
    Time any{}, by_offload{};
    void raise(Time t, bool offload) {
      any = std::max(any, t);
      if (offload) by_offload = std::max(by_offload, t);
    }
  };
  std::map<StorageId, Last> written, read;
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Span at = span(trace, result, id);
    const bool own = made_by_offload(trace, id);
    const auto bound = [own](const Last& last) { return own ? last.any : last.by_offload; };
    for (const Use& use : trace.uses_of(trace.ops[id])) {
      RC_ASSERT(at.start >= bound(written[use.storage]));
      if (use.access == Access::write) RC_ASSERT(at.start >= bound(read[use.storage]));
    }
    for (const Use& use : trace.uses_of(trace.ops[id]))
      (use.access == Access::write ? written : read)[use.storage].raise(at.end, own);
  }
}

// Memory freed on the host may be handed out again at once; whoever gets it must not touch it before
// the last user of what was freed has ended.
void require_safe_reuse(const Trace& trace, const SimulationResult& result) {
  std::map<StorageId, Time> last_use, not_before;
  std::map<std::uint8_t, Time> given_back;  // by place
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Op& op = trace.ops[id];
    if (op.kind == OpKind::alloc) not_before[op.target] = given_back[trace.storages[op.target].place];
    if (op.kind == OpKind::free) {
      Time& back = given_back[trace.storages[op.target].place];
      back = std::max(back, last_use[op.target]);
    }
    const Span at = span(trace, result, id);
    for (const Use& use : trace.uses_of(op)) {
      if (trace.places[trace.storages[use.storage].place] == "hbm") RC_ASSERT(at.start >= not_before[use.storage]);
      last_use[use.storage] = std::max(last_use[use.storage], at.end);
    }
  }
}

RC_GTEST_PROP(OffloadProperty, StreamsAndEventsOrderWhatTheProgramOrders, ()) {
  const Machine machine = test_machine();
  const Trace base = gpt_step(random_shape());
  std::string policy = random_policy();
  if (*rc::gen::arbitrary<bool>())
    policy = "offload:min_bytes=1,what=optimizer+gradients+parameters+activations,to=" +
             *rc::gen::element<std::string>("host", "nvme,group=300", "nvme,group=300,pipeline=1") +
             ",prefetch=" + std::to_string(*rc::gen::inRange(0, 4)) +
             ",buffers=" + std::to_string(*rc::gen::inRange(0, 6));
  RC_LOG() << policy;
  const Trace trace = rewritten(base, policy, machine);
  const SimulationResult result = run(trace, machine);
  require_ordered_uses(trace, result);
  require_safe_reuse(trace, result);
}

// Offloads of everything, behind recompute and sharding.
RC_GTEST_PROP(OffloadProperty, CompositionsAreSoundAndOrdered, ()) {
  const Machine machine = test_machine();
  GptShape shape = random_shape();
  shape.layers = *rc::gen::inRange(2, 5);
  const Trace base = gpt_step(shape);
  std::vector<std::string> texts;
  const std::string recompute = *rc::gen::element<std::string>("", "checkpoint:mode=full", "checkpoint:every=2");
  if (!recompute.empty()) texts.push_back(recompute);
  const int stage = *rc::gen::inRange(-1, 4);
  if (stage >= 0)
    texts.push_back("zero:ranks=" + std::to_string(*rc::gen::element(2, 4)) +
                    ",bucket_bytes=2000,stage=" + std::to_string(stage));
  texts.push_back("offload:min_bytes=1,what=" +
                  *rc::gen::element<std::string>("activations", "optimizer", "parameters", "optimizer+parameters",
                                                 "optimizer+activations", "optimizer+parameters+activations") +
                  ",to=" + *rc::gen::element<std::string>("host", "nvme") + ",prefetch=" +
                  std::to_string(*rc::gen::inRange(0, 4)) + ",buffers=" + std::to_string(*rc::gen::inRange(0, 4)));
  std::vector<PolicySpec> specs;
  for (const std::string& text : texts) {
    RC_LOG() << text << ' ';
    specs.push_back(parse_policy(text));
  }
  Trace trace;
  try {
    trace = apply_rewriters(base, specs, machine, *test_pricer(machine));
  } catch (const UsageError& error) {
    RC_DISCARD(error.what());
  }
  const SimulationResult result = run(trace, machine);
  require_ordered_uses(trace, result);
}

RC_GTEST_PROP(OffloadProperty, WhatLeavesComesBackAndNothingIsLeftBehind, ()) {
  const Machine machine = test_machine();
  const Trace base = gpt_step(random_shape());
  const std::string to = *rc::gen::element<std::string>("host", "peer_hbm");
  const Trace trace =
      rewritten(base,
                "offload:min_bytes=1,what=activations,to=" + std::string(to == "host" ? "host" : "peer") +
                    ",buffers=" + std::to_string(*rc::gen::inRange(0, 6)),
                machine);
  Bytes out = 0, in = 0, live_far = 0, most_far = 0;
  for (const Op& op : trace.ops) {
    if (op.kind == OpKind::copy) (trace.places[op.to] == "hbm" ? in : out) += op.bytes;
    if (op.kind != OpKind::alloc && op.kind != OpKind::free) continue;
    if (trace.places[trace.storages[op.target].place] != to) continue;
    live_far += (op.kind == OpKind::alloc ? 1 : -1) * trace.storages[op.target].bytes;
    most_far = std::max(most_far, live_far);
  }
  RC_ASSERT(out == in);
  RC_ASSERT(live_far == 0);
  RC_ASSERT(most_far <= out);
}

RC_GTEST_PROP(OffloadProperty, MoreBuffersOrLessOffloadNeverTakesMoreHostMemory, ()) {
  const Machine machine = test_machine();
  const Trace base = gpt_step(random_shape());
  const int buffers = *rc::gen::inRange(0, 4);
  const auto host_peak = [&](int b) {
    const Trace trace = rewritten(base, "offload:min_bytes=1,what=activations,buffers=" + std::to_string(b), machine);
    return run(trace, machine).tiers[machine.tier("host")].peak_usage.requested;
  };
  RC_ASSERT(host_peak(buffers + 1) <= host_peak(buffers));
}

RC_GTEST_PROP(OffloadProperty, TheCpuOptimizerMovesGradientsDownAndParametersUp, ()) {
  const Machine machine = test_machine();
  const GptShape shape = random_shape();
  const Trace base = gpt_step(shape);
  const Trace trace = rewritten(base, "offload:what=optimizer", machine);
  const Bytes parameters = parameter_count(shape);
  const SimulationResult result = run(trace, machine);
  RC_ASSERT(result.links[machine.link("pcie_d2h")].bytes == 2 * parameters * shape.steps);
  RC_ASSERT(result.links[machine.link("pcie_h2d")].bytes == 2 * parameters * shape.steps);
  Bytes dram = 0, states_on_device = 0;
  for (const Op& op : trace.ops) dram += op.kind == OpKind::host_work ? op.bytes : 0;
  for (const Storage& s : trace.storages)
    states_on_device += s.kind == StorageKind::optimizer_state && trace.places[s.place] == "hbm" ? s.bytes : 0;
  RC_ASSERT(dram == 30 * parameters * shape.steps);
  RC_ASSERT(states_on_device == 0);
  const SimulationResult before = run(base, machine);
  const int hbm = machine.tier("hbm");
  RC_ASSERT(result.tiers[hbm].peak_by_kind[static_cast<int>(StorageKind::optimizer_state)] == 0);
  // The states leave for good; gradients of two bytes leave once they were sent, which the peak need not show.
  const Bytes less = before.tiers[hbm].peak_allocated - result.tiers[hbm].peak_allocated;
  RC_ASSERT(less >= 12 * parameters);
  RC_ASSERT(less <= 14 * parameters);
}

}  // namespace
}  // namespace memwall
