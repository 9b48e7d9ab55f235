// Order between work that the profile lacks and its neighbours on other streams. Internal to graft.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "models/workload/graft/line_pairs.h"
#include "sim/trace/trace_builder.h"

namespace memwall {

// A complete step's events are not taken over, as the profile has its own. What has no partner stands behind none of
// these: before it begins it has to wait for what wrote what it uses, and what uses what it wrote has to wait for it,
// where that is on another stream.
class LoneWork {
 public:
  // `streams`: by stream of the complete step, that of the result. The references must outlive this.
  LoneWork(const Trace& measured, const Trace& complete, const std::vector<LinePair>& pairs,
           const std::vector<std::uint16_t>& streams);

  // Op `complete` is appended next, on that thread and stream of the result: appends the waits before it.
  void before(OpId complete, std::uint16_t thread, std::uint16_t stream, TraceBuilder& builder);
  // It was appended: appends a record, where others wait for it.
  void behind(OpId complete, std::uint16_t thread, std::uint16_t stream, TraceBuilder& builder);

 private:
  // Of the complete step: what used a storage last before an op, on another stream than that op's.
  struct Awaited {
    OpId op = kNoOp;
    std::uint16_t stream = 0;  // of the result
  };

  void find_awaited(const std::vector<bool>& is_alone, const std::vector<std::uint16_t>& stream_of);

  const Trace& c_;
  std::vector<std::vector<Awaited>> awaited_;  // by op of the complete step
  std::vector<bool> is_recorded_;              // by op of the complete step: alone, and awaited
  std::vector<std::uint32_t> event_;           // by op of the complete step: recorded behind it, or none
};

}  // namespace memwall
