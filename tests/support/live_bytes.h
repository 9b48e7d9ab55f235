// What lives at which point of a trace's host program, by kind of storage. For tests that compare
// memory with a formula.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

using LiveBytes = std::array<Bytes, kStorageKinds>;

inline Bytes of(const LiveBytes& live, StorageKind kind) { return live[static_cast<std::size_t>(kind)]; }

// Parameters, gradients and optimizer states.
inline Bytes model_state(const LiveBytes& live) {
  return of(live, StorageKind::parameter) + of(live, StorageKind::gradient) + of(live, StorageKind::optimizer_state);
}

// Before each op, and (last entry) at the end.
inline std::vector<LiveBytes> live_bytes(const Trace& trace) {
  std::vector<LiveBytes> all;
  LiveBytes live{};
  for (const Storage& s : trace.storages)
    if (s.preexisting) live[static_cast<std::size_t>(s.kind)] += s.bytes;
  for (const Op& op : trace.ops) {
    all.push_back(live);
    if (op.kind != OpKind::alloc && op.kind != OpKind::free) continue;
    const Storage& s = trace.storages[op.target];
    live[static_cast<std::size_t>(s.kind)] += op.kind == OpKind::alloc ? s.bytes : -s.bytes;
  }
  all.push_back(live);
  return all;
}

}  // namespace memwall
