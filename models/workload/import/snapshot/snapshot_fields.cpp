#include "models/workload/import/snapshot/snapshot_fields.h"

#include <fmt/format.h>

namespace memwall {
namespace {

constexpr std::string_view kNames[] = {"",
                                       "action",
                                       "addr",
                                       "size",
                                       "stream",
                                       "time_us",
                                       "frames",
                                       "device_free",
                                       "compile_context",
                                       "user_metadata",
                                       "pool_id",
                                       "forward_frames",
                                       "cpp_frames",
                                       "name",
                                       "filename",
                                       "line",
                                       "fx_node_op",
                                       "fx_node_name",
                                       "fx_node_target",
                                       "fx_original_trace",
                                       "address",
                                       "requested_size",
                                       "state",
                                       "history",
                                       "real_size",
                                       "device",
                                       "total_size",
                                       "allocated_size",
                                       "active_size",
                                       "segment_type",
                                       "segment_pool_id",
                                       "is_expandable",
                                       "blocks",
                                       "stage",
                                       "PYTORCH_CUDA_ALLOC_CONF",
                                       "PYTORCH_ALLOC_CONF",
                                       "max_split_size",
                                       "garbage_collection_threshold",
                                       "expandable_segments",
                                       "roundup_power2_divisions",
                                       "pinned_num_register_threads",
                                       "release_lock_on_cudamalloc",
                                       "pinned_use_cuda_host_register",
                                       "graph_capture_record_stream_reuse",
                                       "segments",
                                       "device_traces",
                                       "allocator_settings",
                                       "external_annotations",
                                       "alloc",
                                       "free_requested",
                                       "free_completed",
                                       "segment_alloc",
                                       "segment_free",
                                       "segment_map",
                                       "segment_unmap",
                                       "oom",
                                       "snapshot",
                                       "active_allocated",
                                       "active_awaiting_free",
                                       "active_pending_free",
                                       "inactive",
                                       "large",
                                       "small"};
static_assert(std::size(kNames) == static_cast<std::size_t>(SnapshotName::small) + 1);

}  // namespace

std::span<const std::string_view> snapshot_names() { return kNames; }

void SnapshotFields::load(std::span<const PickleValue> pairs) {
  pairs_ = pairs;
  present_ = 0;
  unknown_count_ = 0;
  for (std::size_t i = 0; i < pairs.size(); i += 2) {
    if (pairs[i].kind() != PickleValue::Kind::text) continue;
    const std::uint32_t key = static_cast<std::uint32_t>(pairs[i].number());
    if (key < static_cast<std::uint32_t>(kKeys)) {
      if (present_ >> key & 1) throw PickleError{fmt::format("'{}' twice in one dict", texts_[key]), "each key once"};
      present_ |= std::uint64_t{1} << key;
      values_[key] = pairs[i + 1];
    } else if (unknown_count_ < unknown_.size()) {
      unknown_[unknown_count_++] = key;
    }
  }
}

void SnapshotFields::fail(Name name, const std::string& expected) const {
  const std::string_view key = kNames[static_cast<int>(name)];
  if (!has(name)) throw PickleError{fmt::format("{} without '{}'", record_, key), expected};
  const PickleValue value = (*this)[name];
  const std::string found =
      value.kind() == PickleValue::Kind::integer ? std::to_string(value.number()) : content_.name(value);
  throw PickleError{fmt::format("{} as '{}' of {}", found, key, record_), expected};
}

std::int64_t SnapshotFields::integer(Name name, std::int64_t least, std::int64_t most) const {
  const PickleValue value = (*this)[name];
  if (value.kind() != PickleValue::Kind::integer || value.number() < least || value.number() > most)
    fail(name, fmt::format("an integer from {} to {}", least, most));
  return value.number();
}

bool SnapshotFields::boolean_or(Name name, bool otherwise) const {
  if (!has(name)) return otherwise;
  if ((*this)[name].kind() != PickleValue::Kind::boolean) fail(name, "True or False");
  return (*this)[name].number() != 0;
}

std::uint32_t SnapshotFields::text(Name name) const {
  if ((*this)[name].kind() != PickleValue::Kind::text) fail(name, "a text");
  return static_cast<std::uint32_t>((*this)[name].number());
}

}  // namespace memwall
