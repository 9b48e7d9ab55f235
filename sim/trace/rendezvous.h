// Who meets whom: the collectives of several ranks in one trace that are one and the same (kNoRendezvous in sim/trace/op.h).
// Internal to sim/ and to readers of runs; holds no times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

class RendezvousTable {
 public:
  static constexpr std::size_t kNone = ~std::size_t{0};

  explicit RendezvousTable(const Trace& trace);

  // Those of two or more members; a collective whose peers are all absent meets nobody.
  std::size_t size() const { return begins_.size() - 1; }
  // The rendezvous of an op, or kNone.
  std::size_t of(const Op& op) const;
  // Its ops, ascending. REQUIRES: rendezvous < size().
  std::span<const OpId> members(std::size_t rendezvous) const {
    return std::span(members_).subspan(begins_[rendezvous], begins_[rendezvous + 1] - begins_[rendezvous]);
  }

 private:
  // Op::target of each rendezvous, ascending, and its number: they are numbered in the order of their first ops.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> numbers_;
  std::vector<OpId> members_;           // of one rendezvous after the other
  std::vector<std::size_t> begins_{0};  // of each in members_, and the end
};

// Does the op name a rendezvous?
inline bool has_rendezvous(const Op& op) { return op.kind == OpKind::collective && op.target != kNoRendezvous; }

// Above the numbers of all rendezvous of a trace of several ranks; 1 where there are none.
std::uint64_t first_free_rendezvous(const Trace& trace);

// Of one rank's program: a collective that is in it again (recompute) meets anew, in a rendezvous of its own with those
// of the ranks that repeat it as often. `first_free`: of the trace of all ranks. Returns false where these are more
// than can be numbered.
[[nodiscard]] bool separate_rendezvous(Trace& program, std::uint64_t first_free);

}  // namespace memwall
