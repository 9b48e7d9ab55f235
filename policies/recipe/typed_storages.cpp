#include "policies/recipe/typed_storages.h"

namespace memwall {
namespace {

bool is_fp32(DataType type) { return type == DataType::fp32 || type == DataType::tf32 || type == DataType::unknown; }

// Elements of four bytes that no kernel in whole numbers makes.
bool holds_fp32(const Trace& t, const Dataflow& flow, StorageId id) {
  const Storage& storage = t.storages[id];
  if (storage.shape == 0 || storage.bytes == 0) return false;
  const std::int64_t elements = known_elements(t.shapes[storage.shape]);
  if (elements == 0 || storage.bytes != elements * bytes_of(DataType::fp32)) return false;
  const auto writers = flow.writers(id);
  if (!writers.empty()) return is_fp32(t.ops[writers.front()].data_type);
  for (const Touch& touch : flow.touches(id))
    if (is_fp32(t.ops[touch.op].data_type)) return true;
  return false;
}

}  // namespace

TypedStorages::TypedStorages(const Trace& trace, const Dataflow& flow)
    : trace_(trace), types_(trace.storages.size(), DataType::unknown) {
  for (StorageId id = 0; id < trace.storages.size(); ++id)
    if (holds_fp32(trace, flow, id)) types_[id] = DataType::fp32;
}

void TypedStorages::set(StorageId id, DataType type) {
  if (id >= types_.size()) types_.resize(id + 1, DataType::unknown);
  types_[id] = type;
}

}  // namespace memwall
