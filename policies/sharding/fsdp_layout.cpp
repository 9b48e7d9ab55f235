#include "policies/sharding/fsdp_layout.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace memwall {
namespace {

Bytes rows_of(const Trace& trace, StorageId storage, Bytes elements) {
  const Shape& shape = trace.shapes[trace.storages[storage].shape];
  return known_elements(shape) == elements && elements > 0 ? shape.front() : elements;
}

}  // namespace

Bytes sharded_element(const Trace& trace, const Dataflow& flow, StorageId storage) {
  const Storage& s = trace.storages[storage];
  const std::int64_t elements = known_elements(trace.shapes[s.shape]);
  if (elements == 0 || s.bytes % elements != 0 || s.bytes / elements > 8) return element_bytes(trace, flow, storage);
  return std::max<Bytes>(s.bytes / elements, 1);
}

FsdpLayout::FsdpLayout(const Trace& trace, const Dataflow& flow, const ZeroAnalysis& analysis, std::uint32_t shards)
    : shards_(shards), shard_(trace.storages.size(), 0), element_(trace.storages.size(), 1) {
  std::map<std::string, StorageId> by_label;
  std::map<Bytes, StorageId> by_elements;
  const auto elements = [&](StorageId id) { return trace.storages[id].bytes / element_[id]; };
  for (const auto* group : {&analysis.parameters, &analysis.gradients, &analysis.states, &analysis.temporaries})
    for (const StorageId id : *group) element_[id] = sharded_element(trace, flow, id);
  for (const StorageId id : analysis.parameters) {
    by_label.emplace(trace.strings[trace.storages[id].label] + ".grad", id);
    by_elements.emplace(elements(id), id);
  }
  // A gradient has its parameter's shape, whatever kernel made it: a bias's is the sum of a matrix, which keeps a row.
  const auto like = [&](StorageId gradient) {
    const auto named = by_label.find(trace.strings[trace.storages[gradient].label]);
    if (named != by_label.end() && elements(named->second) == elements(gradient)) return named->second;
    const auto as_large = by_elements.find(elements(gradient));
    return as_large == by_elements.end() ? gradient : as_large->second;
  };
  const auto cut = [&](StorageId id, StorageId shaped) {
    const Bytes rows = rows_of(trace, shaped, elements(id));
    shard_[id] = rows == 0 ? 0 : (rows + shards - 1) / shards * (elements(id) / rows);
  };
  for (const auto* group : {&analysis.parameters, &analysis.states, &analysis.temporaries})
    for (const StorageId id : *group) cut(id, id);
  for (const StorageId id : analysis.gradients) cut(id, like(id));
}

FsdpLayout::FsdpLayout(const Trace& trace, const Dataflow& flow, const ZeroAnalysis& analysis, const FsdpUnits& units,
                       std::uint32_t shards, Bytes alignment)
    : shards_(shards), shard_(trace.storages.size(), 0), element_(trace.storages.size(), 1) {
  const auto cut = [&](const std::vector<StorageId>& storages) {
    Bytes end = 0;
    for (const StorageId id : storages) {
      element_[id] = sharded_element(trace, flow, id);
      const Bytes aligned = std::max<Bytes>(alignment / element_[id], 1), before = (end + shards - 1) / shards;
      end += (trace.storages[id].bytes / element_[id] + aligned - 1) / aligned * aligned;
      shard_[id] = (end + shards - 1) / shards - before;
    }
  };
  for (const FsdpUnit& unit : units.all()) cut(unit.parameters);
  // Those that one pass makes are one flat gradient; the next step's may be other storages.
  std::vector<bool> is_cut(trace.storages.size(), false);
  const auto cut_of = [&](std::size_t unit, const auto& gradients) {
    std::vector<StorageId> own;
    for (const StorageId id : gradients)
      if (units.of_storage(id) == unit && !is_cut[id]) own.push_back(id);
    for (const StorageId id : own) is_cut[id] = true;
    cut(own);
  };
  for (const BackwardPass& pass : analysis.passes) {
    std::set<StorageId> made;
    for (const GradientMade& one : pass.made) made.insert(one.gradient);
    for (std::size_t unit = 0; unit < units.all().size(); ++unit) cut_of(unit, made);
  }
  for (const StorageId id : analysis.gradients)  // of unused parameters
    if (!is_cut[id]) cut({id});
  cut(analysis.states);
  cut(analysis.temporaries);
}

Partition FsdpLayout::partition(const Trace& trace, const ZeroAnalysis& analysis) const {
  Partition partition(trace.storages.size(), shards_);
  for (const auto* group : {&analysis.parameters, &analysis.gradients, &analysis.states, &analysis.temporaries})
    for (const StorageId id : *group) partition.cut_to(id, trace.storages[id].bytes, shard_bytes(id), element_[id]);
  return partition;
}

}  // namespace memwall
