// Which storage of a trace each tensor of an ExecutionTrace lies in.
//
// Storage ids of an ExecutionTrace are made from pointers and come back for other storages. An
// id therefore means a new storage whenever an operator outputs it without having received it and
// none of the operators inside it made it already: that operator is the storage's birth. Where the
// capture has memory events, a birth takes ("claims") an allocation made while its operator was the
// innermost one with a birth of that size open: equal after rounding to 512 bytes and not freed
// before the operator ended; else, for sizes that the caching allocator leaves unsplit, up to 1 MiB
// larger (c10/cuda/CUDACachingAllocator.cpp, should_split).
//
// A storage that an operator receives and nobody made before is older than the window: it becomes
// a preexisting storage, and Trace::untracked_bytes shrinks by its size. If the capture frees an
// unknown address of exactly that size after the storage's last use, it is taken for the same one.
#pragma once

#include <cstdint>
#include <vector>

#include "models/workload/import/execution_trace/execution_trace.h"
#include "models/workload/import/timed/timed_import.h"
#include "models/workload/import/execution_trace/operator_match.h"

namespace memwall {

struct StorageJoin {
  // By index into ExecutionTrace::tensors; kNoStorage for host tensors, undefined and empty ones,
  // and births that no allocation fits.
  std::vector<StorageId> storage_of_tensor;
  // By storage: the node that made it (kNoIndex: none; older than the window, or workspace).
  std::vector<std::uint32_t> node_of_storage;
  // By storage: index of the first tensor that lies in it, kNoIndex if none does.
  std::vector<std::uint32_t> tensor_of_storage;

  std::size_t births = 0, claimed = 0, aliases = 0;      // aliases: births that are a storage still alive
  Bytes birth_bytes = 0, claimed_bytes = 0;              // rounded to 512, without aliases
  std::size_t allocations = 0, workspaces = 0;           // workspaces: allocations that nobody claims
  std::size_t preexisting = 0, preexisting_matched = 0;  // the latter: with a free in the capture
  Bytes preexisting_bytes = 0;
  Bytes overdrawn_bytes = 0;  // preexisting storages beyond Trace::untracked_bytes
};

// Adds the preexisting storages to the trace (and, where the capture has no memory events, the
// born ones, without alloc ops), and lowers untracked_bytes.
StorageJoin join_storages(ImportedTrace& imported, const TimedCapture& capture, const ExecutionTrace& execution,
                          const OperatorMatch& match);

// The size that the caching allocator rounds a request to.
constexpr Bytes rounded_size(Bytes bytes) { return bytes <= 0 ? 0 : (bytes + 511) / 512 * 512; }

}  // namespace memwall
