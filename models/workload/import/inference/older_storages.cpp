#include "models/workload/import/inference/older_storages.h"

#include <algorithm>
#include <map>
#include <utility>

#include "models/workload/import/execution_trace/storage_join.h"

namespace memwall {

Bytes bytes_at_start(const Trace& trace, const TimedCapture& capture) {
  const bool known = std::any_of(capture.memory.begin(), capture.memory.end(),
                                 [](const CapturedMemory& m) { return m.on_device() && m.total_allocated >= 0; });
  if (!known) return -1;
  Bytes bytes = trace.untracked_bytes;
  for (const Storage& s : trace.storages) bytes += s.preexisting ? rounded_size(s.bytes) : 0;
  return bytes;
}

void adopt_freed(const ImportedTrace& imported, const ProfileFacts& facts, const std::vector<Time>& last_use,
                 TensorTable& table) {
  std::map<Bytes, std::vector<std::uint32_t>> older;  // by size
  for (std::uint32_t i = 0; i < table.storages.size(); ++i)
    if (table.storages[i].older) older[table.storages[i].bytes].push_back(i);
  for (auto& [bytes, list] : older)
    std::stable_sort(list.begin(), list.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return last_use[a] < last_use[b]; });
  std::vector<std::pair<Time, StorageId>> freed;
  for (StorageId s = 0; s < imported.trace.storages.size(); ++s)
    if (imported.trace.storages[s].preexisting && facts.freed(s) != kNever) freed.emplace_back(facts.freed(s), s);
  std::sort(freed.begin(), freed.end());
  for (const auto& [time, id] : freed) {
    std::vector<std::uint32_t>& list = older[rounded_size(imported.trace.storages[id].bytes)];
    const auto behind =
        std::upper_bound(list.begin(), list.end(), time, [&](Time t, std::uint32_t s) { return t < last_use[s]; });
    if (behind == list.begin()) continue;
    table.storages[*(behind - 1)].id = id;
    list.erase(behind - 1);
  }
}

}  // namespace memwall
