#include "policies/sharding/fsdp_layout.h"

namespace memwall {
namespace {

Bytes rows_of(const Trace& trace, StorageId storage, Bytes elements) {
  const Shape& shape = trace.shapes[trace.storages[storage].shape];
  return known_elements(shape) == elements && elements > 0 ? shape.front() : elements;
}

}  // namespace

FsdpLayout::FsdpLayout(const Trace& trace, const Dataflow& flow, const ZeroAnalysis& analysis, std::uint32_t shards)
    : shards_(shards), shard_(trace.storages.size(), 0), element_(trace.storages.size(), 1) {
  for (const auto* group : {&analysis.parameters, &analysis.gradients, &analysis.states, &analysis.temporaries})
    for (const StorageId id : *group) {
      element_[id] = element_bytes(trace, flow, id);
      const Bytes elements = trace.storages[id].bytes / element_[id];
      const Bytes rows = rows_of(trace, id, elements);
      shard_[id] = rows == 0 ? 0 : (rows + shards - 1) / shards * (elements / rows);
    }
}

Partition FsdpLayout::partition(const Trace& trace, const ZeroAnalysis& analysis) const {
  Partition partition(trace.storages.size(), shards_);
  for (const auto* group : {&analysis.parameters, &analysis.gradients, &analysis.states, &analysis.temporaries})
    for (const StorageId id : *group) partition.cut_to(id, trace.storages[id].bytes, shard_bytes(id), element_[id]);
  return partition;
}

}  // namespace memwall
