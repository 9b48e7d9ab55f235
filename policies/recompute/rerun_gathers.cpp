#include "policies/recompute/rerun_gathers.h"

#include <algorithm>
#include <map>

namespace memwall {
namespace {

// One gather of forward as the re-run reads it.
struct ReadGather {
  OpId last_reader = kNoOp;
  std::set<StorageId> gone;  // of what it filled: given back by then
};

std::map<OpId, ReadGather> read_gathers(const Trace& trace, const ParameterGathers& gathers,
                                        const std::set<OpId>& rerun, OpId position) {
  std::map<OpId, ReadGather> read;
  for (const OpId id : rerun)
    for (const Use& use : trace.uses_of(trace.ops[id])) {
      const OpId gather = gathers.gather_of(use.storage);
      if (gather == kNoOp || use.access == Access::write) continue;
      ReadGather& one = read[gather];
      one.last_reader = id;
      if (!gathers.lives(use.storage, position)) one.gone.insert(use.storage);
    }
  return read;
}

// Nothing: it is there at the re-run, or comes without anything in between.
Bytes distance_to_backward(const ParameterGathers& gathers, const std::map<OpId, ReadGather>& read,
                           const ReadGather& one, OpId backward, OpId position) {
  if (backward < position) return 0;
  Bytes distance = 0;
  for (const auto& [gather, other] : read)
    if (other.last_reader > one.last_reader) distance += gathers.bytes_of(gather);
  const OpId reader = gathers.first_reader(backward, position);
  return distance + gathers.read_between(position, reader == kNoOp ? backward : reader);
}

}  // namespace

std::vector<RepeatedGather> gathers_to_repeat(const Trace& trace, const ParameterGathers& gathers,
                                              const std::set<OpId>& rerun, OpId position) {
  std::vector<RepeatedGather> repeated;
  const std::map<OpId, ReadGather> read = read_gathers(trace, gathers, rerun, position);
  for (const auto& [gather, one] : read) {
    bool repeats = false, all_come = true;
    Bytes farthest = 0;
    for (const StorageId storage : one.gone) {
      const StorageId other = gathers.stand_in(storage, position);
      all_come = all_come && other != kNoStorage;
      if (other == kNoStorage) continue;
      const Bytes distance = distance_to_backward(gathers, read, one, gathers.gather_of(other), position);
      repeats = repeats || (distance > 0 && distance >= trace.reuse_distance);
      farthest = std::max(farthest, distance);
    }
    if (repeats || !all_come) repeated.push_back({gather, all_come ? farthest + 1 : 0});
  }
  return repeated;
}

}  // namespace memwall
