// The names that a memory snapshot uses, and the fields of one of its dicts.
//
// Source: pytorch/pytorch, torch/csrc/cuda/memory_snapshot.cpp and Module.cpp, torch/cuda/_memory_viz.py (the older
// forms).
#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "models/workload/import/snapshot/pickle_reader.h"
#include "models/workload/import/snapshot/snapshot_tables.h"

namespace memwall {

// Keys first, then values. Their numbers are those in the table of texts: snapshot_names() is added to it first.
enum class SnapshotName : std::uint32_t {
  empty,
  // a trace entry
  action,
  addr,
  size,
  stream,
  time_us,
  frames,
  device_free,
  compile_context,
  user_metadata,
  pool_id,
  forward_frames,
  cpp_frames,
  // a frame
  name,
  filename,
  line,
  fx_node_op,
  fx_node_name,
  fx_node_target,
  fx_original_trace,
  // a block
  address,
  requested_size,
  state,
  history,
  real_size,
  // a segment
  device,
  total_size,
  allocated_size,
  active_size,
  segment_type,
  segment_pool_id,
  is_expandable,
  blocks,
  // an annotation
  stage,
  // settings
  cuda_conf,
  conf,
  max_split_size,
  garbage_collection_threshold,
  expandable_segments,
  roundup_power2_divisions,
  pinned_num_register_threads,
  release_lock_on_cudamalloc,
  pinned_use_cuda_host_register,
  graph_capture_record_stream_reuse,
  // a snapshot
  segments,
  device_traces,
  allocator_settings,
  external_annotations,
  keys,  // how many there are
  // actions, in the order of MemoryEvent::Action
  alloc = keys,
  free_requested,
  free_completed,
  segment_alloc,
  segment_free,
  segment_map,
  segment_unmap,
  oom,
  snapshot,
  // states, kinds of segments
  active_allocated,
  active_awaiting_free,
  active_pending_free,
  inactive,
  large,
  small
};
std::span<const std::string_view> snapshot_names();

// One dict, its known keys looked up. Getters throw PickleError that names field and record.
class SnapshotFields {
 public:
  using Name = SnapshotName;

  SnapshotFields(const TextTable& texts, const PickleContent& content) : texts_(texts), content_(content) {}

  // Takes the place of the dict before; `pairs` must stay while it is used. Throws PickleError where a known key comes
  // twice.
  void load(std::span<const PickleValue> pairs);
  // Names the record in messages: "a trace entry".
  void set_record(const char* record) { record_ = record; }
  const char* record() const { return record_; }

  bool has(Name name) const { return (present_ >> static_cast<int>(name) & 1) != 0; }
  template <class... Names>
  bool has_any(Names... names) const {
    return (has(names) || ...);
  }
  PickleValue operator[](Name name) const { return has(name) ? values_[static_cast<int>(name)] : PickleValue(); }
  std::span<const PickleValue> pairs() const { return pairs_; }
  // Texts that are no known key.
  std::span<const std::uint32_t> unknown_keys() const { return {unknown_.data(), unknown_count_}; }

  std::int64_t integer(Name name, std::int64_t least, std::int64_t most) const;
  std::int64_t integer_or(Name name, std::int64_t otherwise, std::int64_t least, std::int64_t most) const {
    return has(name) ? integer(name, least, most) : otherwise;
  }
  bool boolean_or(Name name, bool otherwise) const;
  std::uint32_t text(Name name) const;  // number in the table
  std::uint32_t text_or_empty(Name name) const { return has(name) ? text(name) : 0; }

  [[noreturn]] void fail(Name name, const std::string& expected) const;

 private:
  static constexpr int kKeys = static_cast<int>(Name::keys);
  static_assert(kKeys <= 64);
  std::span<const PickleValue> pairs_;
  std::uint64_t present_ = 0;
  std::array<PickleValue, kKeys> values_;
  std::array<std::uint32_t, 8> unknown_{};  // more are not told
  std::size_t unknown_count_ = 0;
  const TextTable& texts_;
  const PickleContent& content_;
  const char* record_ = "";
};

}  // namespace memwall
