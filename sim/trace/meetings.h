// Who meets whom: the collectives of several ranks in one trace that are one and the same (kNoMeeting in sim/trace/op.h).
// Internal to sim/ and to readers of runs; holds no times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

class Meetings {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};

  explicit Meetings(const Trace& trace);

  // Those of two or more members; a collective whose peers are all absent meets nobody.
  std::size_t size() const { return members_.size(); }
  // The meeting of an op, or kNone.
  std::size_t of(const Op& op) const;
  // Its ops, ascending. REQUIRES: meeting < size().
  std::span<const OpId> members(std::size_t meeting) const { return members_[meeting]; }

 private:
  std::unordered_map<std::uint32_t, std::size_t> number_;  // of those in members_
  std::vector<std::vector<OpId>> members_;
};

// Does the op name a meeting?
inline bool names_meeting(const Op& op) { return op.kind == OpKind::collective && op.target != kNoMeeting; }

}  // namespace memwall
