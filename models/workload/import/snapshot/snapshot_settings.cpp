#include "models/workload/import/snapshot/snapshot_settings.h"

#include <fmt/format.h>

#include <bit>

#include "models/workload/import/bytes/quote_for_message.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr std::int64_t kMostDivisions = std::int64_t{1} << 16;

void apply_divisions(const SnapshotSettings& recorded, AllocatorSettings& settings, std::vector<std::string>& notes) {
  if (recorded.divisions.empty()) return;
  settings.roundup_power2_divisions = {};
  for (const auto& [mebibytes, divisions] : recorded.divisions) {
    const bool power = mebibytes > 0 && std::has_single_bit(static_cast<std::uint64_t>(mebibytes));
    const int entry = power ? std::countr_zero(static_cast<std::uint64_t>(mebibytes)) : -1;
    const bool known = entry >= 0 && entry < static_cast<int>(settings.roundup_power2_divisions.size());
    const bool sensible = divisions >= 0 && divisions <= kMostDivisions &&
                          (divisions == 0 || std::has_single_bit(static_cast<std::uint64_t>(divisions)));
    if (known && sensible)
      settings.roundup_power2_divisions[entry] = static_cast<std::uint32_t>(divisions);
    else
      notes.push_back(
          fmt::format("allocator_settings: roundup_power2_divisions of {} for {} MiB makes no sense and is "
                      "ignored.",
                      divisions, mebibytes));
  }
}

}  // namespace

AllocatorSettings settings_of(const SnapshotSettings& recorded, std::vector<std::string>& notes) {
  AllocatorSettings settings;
  if (recorded.text) {
    try {
      settings = parse_allocator_settings(*recorded.text);
    } catch (const UsageError& error) {
      notes.push_back(fmt::format("allocator_settings: the text {} is not understood and ignored: {}",
                                  quote_for_message(*recorded.text), error.what()));
    }
  }
  if (recorded.max_split_size) {
    const Bytes size = *recorded.max_split_size;
    if (size == -1)
      settings.max_split_size = AllocatorSettings::kNoLimit;
    else if (size >= settings.large_segment_size)  // what PyTorch accepts
      settings.max_split_size = size;
    else
      notes.push_back(fmt::format("allocator_settings: max_split_size of {} bytes is below {} MiB and is ignored.",
                                  size, settings.large_segment_size / MiB(1)));
  }
  if (recorded.garbage_collection_threshold) {
    const double share = *recorded.garbage_collection_threshold;
    if (share >= 0 && share < 1)
      settings.garbage_collection_threshold = share;
    else
      notes.push_back(fmt::format(
          "allocator_settings: garbage_collection_threshold of {} is not between 0 and 1 and is ignored.", share));
  }
  if (recorded.expandable_segments) settings.expandable_segments = *recorded.expandable_segments;
  apply_divisions(recorded, settings, notes);
  return settings;
}

}  // namespace memwall
