#include "models/workload/import/execution_trace/stream_waits.h"

#include <algorithm>
#include <cstdint>
#include <map>

namespace memwall {
namespace {

class Waits {
 public:
  explicit Waits(const Trace& trace) : t_(trace) {
    std::map<std::uint32_t, OpId> records;  // by event: the latest
    for (OpId id = 0; id < t_.ops.size(); ++id) {
      const Op& op = t_.ops[id];
      if (op.kind == OpKind::event_record) records[op.target] = id;
      if (op.kind == OpKind::event_wait)
        if (const auto record = records.find(op.target); record != records.end())
          waits_[{t_.ops[record->second].stream, op.stream}].emplace_back(record->second, id);
      if (op.kind == OpKind::synchronize && op.wait_for == WaitFor::stream) by_host_[op.stream].push_back(id);
      if (op.kind == OpKind::synchronize && op.wait_for == WaitFor::device) by_host_[kAllStreams].push_back(id);
    }
    // Of the waits for a record and for those behind it the first.
    for (auto& [streams, waits] : waits_) {
      std::ranges::sort(waits);
      for (std::size_t i = waits.size(); i-- > 1;) waits[i - 1].second = std::min(waits[i - 1].second, waits[i].second);
    }
  }

  std::vector<std::pair<OpId, OpId>> all() const {
    std::vector<std::uint16_t> home(t_.storages.size(), kAllStreams);
    std::vector<std::pair<OpId, OpId>> pairs;
    for (OpId id = 0; id < t_.ops.size(); ++id) {
      const Op& op = t_.ops[id];
      for (const Use& use : t_.uses_of(op)) {
        std::uint16_t& stream = home[use.storage];
        if (stream == kAllStreams) stream = op.stream;
        if (stream != op.stream) pairs.emplace_back(id, first_behind(id, op.stream, stream));
      }
    }
    return pairs;
  }

 private:
  static constexpr std::uint16_t kAllStreams = 0xffff;

  OpId first_behind(OpId use, std::uint16_t of, std::uint16_t by) const {
    OpId first = static_cast<OpId>(t_.ops.size() - 1);
    if (const auto waits = waits_.find({of, by}); waits != waits_.end())
      if (const auto behind = std::ranges::upper_bound(waits->second, use, {}, &std::pair<OpId, OpId>::first);
          behind != waits->second.end())
        first = std::min(first, behind->second);
    for (const std::uint16_t stream : {of, kAllStreams})
      if (const auto host = by_host_.find(stream); host != by_host_.end())
        if (const auto behind = std::ranges::upper_bound(host->second, use); behind != host->second.end())
          first = std::min(first, *behind);
    return first;
  }

  const Trace& t_;
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::vector<std::pair<OpId, OpId>>> waits_;  // record, wait
  std::map<std::uint16_t, std::vector<OpId>> by_host_;
};

}  // namespace

std::vector<std::pair<OpId, OpId>> waits_of(const Trace& trace) { return Waits(trace).all(); }

}  // namespace memwall
