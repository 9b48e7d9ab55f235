#include "policies/sharding/zero_partition.h"

#include <algorithm>
#include <cassert>
#include <map>

namespace memwall {
namespace {

Bytes round_up_division(Bytes value, Bytes by) { return (value + by - 1) / by; }

}  // namespace

Bytes element_bytes(const Trace& trace, const Dataflow& flow, StorageId storage) {
  const Bytes bytes = trace.storages[storage].bytes;
  Bytes smallest = 0;
  if (trace.storages[storage].kind != StorageKind::optimizer_state) {
    for (const Touch& touch : flow.touches(storage)) {
      const Op& op = trace.ops[touch.op];
      const Bytes size = op.phase == Phase::optimizer ? 0 : bytes_of(op.data_type);
      if (size > 0 && bytes % size == 0 && (smallest == 0 || size < smallest)) smallest = size;
    }
  }
  if (smallest > 0) return smallest;
  return bytes % 4 == 0 ? 4 : bytes % 2 == 0 ? 2 : 1;
}

void Partition::cut_together(const Trace& trace, const Dataflow& flow, const std::vector<StorageId>& storages) {
  std::map<Bytes, Bytes> end;  // by element size: elements laid so far
  for (const StorageId id : storages) {
    const Bytes element = element_bytes(trace, flow, id), bytes = trace.storages[id].bytes;
    Bytes& position = end[element];
    const Bytes before = round_up_division(position, ranks_);
    position += bytes / element;
    entries_[id] = {bytes, (round_up_division(position, ranks_) - before) * element, element, false};
  }
}

void Partition::cut_each(const Trace& trace, const Dataflow& flow, const std::vector<StorageId>& storages) {
  for (const StorageId id : storages) {
    const Bytes element = element_bytes(trace, flow, id), bytes = trace.storages[id].bytes;
    entries_[id] = {bytes, round_up_division(bytes / element, ranks_) * element, element, true};
  }
}

Bytes Partition::message(const std::vector<StorageId>& storages) const {
  Bytes padded = 0, together = 0, element = 1;
  for (const StorageId id : storages) {
    const Entry& e = entries_[id];
    assert(e.element > 0);
    if (e.each)
      padded += e.share * ranks_;
    else
      together += e.full;
    element = std::max(element, e.element);
  }
  return padded + round_up_division(together, element * ranks_) * element * ranks_;
}

}  // namespace memwall
