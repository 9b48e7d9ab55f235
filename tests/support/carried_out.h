// What property tests ask of a trace into which a memory plan was put.
#pragma once

#include <rapidcheck.h>

#include <string>
#include <vector>

#include "sim/trace/trace_check.h"
#include "tests/support/races.h"

namespace memwall {

// What kernels compute that are not re-run, in their order; and is every re-run op its original again?
inline void assert_same_contents(const Trace& before, const Trace& after) {
  const std::vector<std::uint64_t> hashes = producer_hashes(after), originals = producer_hashes(before);
  std::vector<std::uint64_t> kept, expected;
  for (OpId id = 0; id < after.ops.size(); ++id) {
    if (after.ops[id].kind != OpKind::kernel) continue;
    if (after.ops[id].phase == Phase::recompute)
      RC_ASSERT(hashes[id] == hashes[after.ops[id].source]);
    else
      kept.push_back(hashes[id]);
  }
  for (OpId id = 0; id < before.ops.size(); ++id)
    if (before.ops[id].kind == OpKind::kernel) expected.push_back(originals[id]);
  RC_ASSERT(kept == expected);
}

// Sound, free of races on two streams, and with the same contents.
inline void assert_carried_out(const Trace& before, const Trace& after) {
  RC_ASSERT(check(after) == std::vector<std::string>{});
  RC_ASSERT(races(after, 2) == std::vector<std::string>{});
  assert_same_contents(before, after);
}

}  // namespace memwall
