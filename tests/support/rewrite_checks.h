// What tests of rewriters ask of a rewritten trace: bytes, times, contents, refusals.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/error.h"
#include "sim/policy/registry.h"
#include "sim/engine/simulation.h"
#include "sim/trace/trace_check.h"
#include "tests/support/live_bytes.h"
#include "tests/support/test_machine.h"

namespace memwall {

// After a policy ("checkpoint:mode=full"), on the test machine. Throws UsageError where it is refused.
inline Trace rewritten(const Trace& trace, const std::string& policy) {
  const Machine machine = test_machine();
  const auto pricer = test_pricer(machine);
  return apply_rewriters(trace, {parse_policy(policy)}, machine, *pricer);
}

// The sentence with which the policy is refused, "" if it is not.
inline std::string refusal(const Trace& trace, const std::string& policy) {
  try {
    rewritten(trace, policy);
  } catch (const UsageError& e) {
    return e.what();
  }
  return "";
}

// On the test machine, with the ideal allocator.
inline SimulationResult simulated(const Trace& trace) {
  SimulationOptions options;
  options.allocator = "ideal";
  return simulate(trace, test_machine(), options);
}

// Bytes of the given kind that are alive before each op (and, last, at the end).
inline std::vector<Bytes> live_bytes(const Trace& t, StorageKind kind) {
  std::vector<Bytes> all;
  for (const LiveBytes& live : live_bytes(t)) all.push_back(of(live, kind));
  return all;
}

inline Bytes activation_peak(const Trace& t) {
  const std::vector<Bytes> live = live_bytes(t, StorageKind::activation);
  return *std::max_element(live.begin(), live.end());
}

// kNoOp if there is none.
inline OpId first_of(const Trace& t, Phase phase) {
  for (OpId id = 0; id < t.ops.size(); ++id)
    if (t.ops[id].phase == phase) return id;
  return kNoOp;
}

// Of the ops of a phase: how many run on the device, and for how long.
inline std::size_t count(const Trace& t, Phase phase) {
  return static_cast<std::size_t>(std::count_if(
      t.ops.begin(), t.ops.end(), [&](const Op& op) { return op.phase == phase && runs_on_device(op.kind); }));
}

inline Duration device_time(const Trace& t, Phase phase) {
  Duration sum{};
  for (const Op& op : t.ops)
    if (op.phase == phase && runs_on_device(op.kind)) sum += op.duration;
  return sum;
}

// The operators of the re-run kernels, in order.
inline std::vector<std::string> rerun_operators(const Trace& t) {
  std::vector<std::string> names;
  for (const Op& op : t.ops)
    if (op.phase == Phase::recompute && op.kind == OpKind::kernel) names.push_back(t.strings[op.operator_name]);
  return names;
}

// Every recomputed op computes what its original computed, and every other op what it computed before.
inline void expect_same_contents(const Trace& before, const Trace& after) {
  const std::vector<std::uint64_t> hashes = producer_hashes(after), originals = producer_hashes(before);
  std::size_t recomputed = 0;
  std::vector<std::uint64_t> kept;
  for (OpId id = 0; id < after.ops.size(); ++id) {
    if (after.ops[id].kind == OpKind::mark) continue;
    if (after.ops[id].phase == Phase::recompute && after.ops[id].source != kNoOp) {
      EXPECT_EQ(hashes[id], hashes[after.ops[id].source]) << "op " << id;
      ++recomputed;
    } else if (hashes[id] != 0) {
      kept.push_back(hashes[id]);
    }
  }
  EXPECT_GT(recomputed, 0u);
  std::vector<std::uint64_t> expected;
  std::copy_if(originals.begin(), originals.end(), std::back_inserter(expected),
               [](std::uint64_t h) { return h != 0; });
  EXPECT_EQ(kept, expected);
}

inline bool has_note(const Trace& t, const std::string& part) {
  return std::any_of(t.notes.begin(), t.notes.end(),
                     [&](const std::string& n) { return n.find(part) != std::string::npos; });
}

}  // namespace memwall
