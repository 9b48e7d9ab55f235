// Writes a trace op by op. Importers, generators and rewriters use it, so that
// uses, versions and strings are kept consistent in one place.
#pragma once

#include <initializer_list>
#include <string_view>
#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

class TraceBuilder {
 public:
  TraceBuilder() = default;
  // Starts from the threads, streams, places, storages, constants and strings of
  // `base`, with no ops: for rewriters, which then append kept and new ops.
  static TraceBuilder like(const Trace& base);

  std::uint16_t add_thread(std::string_view name);
  std::uint16_t add_stream(std::string_view name, StreamRole role, std::uint16_t device = 0);
  StorageId add_storage(Bytes bytes, StorageKind kind, std::string_view place, std::string_view label,
                        bool preexisting = false);
  std::uint32_t add_event() { return trace_.event_count++; }

  // Appends the op and returns its id. The op's uses are taken from `uses`;
  // for a write, version 0 means "the next version of that storage", and for a
  // read, version `kLatest` means "its present version".
  static constexpr std::uint32_t kLatest = 0xffffffff;
  OpId append(Op op, std::span<const Use> uses = {});

  // The same with the versions of a step in order, whatever `uses` say: reads mean the present one, writes make the next.
  OpId append_renewed(const Op& op, std::span<const Use> uses);

  // Shorthands; each sets the kind, thread and stream, and leaves costs to the caller's `op`.
  OpId alloc(StorageId storage, std::uint16_t thread);
  OpId free(StorageId storage, std::uint16_t thread);
  OpId record(std::uint32_t event, std::uint16_t stream, std::uint16_t thread);
  OpId wait(std::uint32_t event, std::uint16_t stream, std::uint16_t thread);

  // The newest version of a storage that has been appended so far.
  std::uint32_t version(StorageId storage) const;

  Trace& trace() { return trace_; }
  Trace finish() && { return std::move(trace_); }

 private:
  Trace trace_;
  std::vector<std::uint32_t> versions_;
};

}  // namespace memwall
