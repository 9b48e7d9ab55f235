// Which collectives of one rank are which of another's: two sequences of one process group.
//
// What both sides must share: kind, data type, message (but of an all-to-all, whose shares may differ by rank), sender
// and receiver. Windows may begin and end elsewhere, and a record may be missing within.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/trace/op.h"
#include "sim/units.h"

namespace memwall {

struct MatchItem {
  CollectiveKind kind = CollectiveKind::none;
  DataType type = DataType::unknown;
  std::int64_t elements = -1, sequence = -1, source = -1, destination = -1;  // -1 = unknown
  bool several_peers = false;  // its kernel ends with its last exchange, which may be another
  Time start{}, end{};
};

struct ItemPair {
  std::uint32_t a = 0, b = 0;
};

// Ends of these agree on all ranks: none can end before the last has begun, and all end within the last exchange.
// The sender of a broadcast or a message may be done as soon as it has put it into a buffer.
constexpr bool ends_together(CollectiveKind kind) {
  return kind == CollectiveKind::all_reduce || kind == CollectiveKind::reduce_scatter ||
         kind == CollectiveKind::all_gather || kind == CollectiveKind::all_to_all || kind == CollectiveKind::barrier;
}

inline constexpr Duration kEndsAgree = microseconds(50);  // on one clock; 1 to 7 us were measured on one host

// Can the two be the same collective, as far as they say?
bool compatible(const MatchItem& a, const MatchItem& b);

// Pairs of neighbours whose times from end to end agree, whatever the clocks: within 20 us and 100 ppm. With one more
// for the first, what tells a right match from a wrong one.
std::uint64_t agreeing_intervals(std::span<const MatchItem> a, std::span<const MatchItem> b,
                                 std::span<const ItemPair> pairs);

// The pairs at either end of such an interval; all where there is none.
std::vector<ItemPair> agreeing_pairs(std::span<const MatchItem> a, std::span<const MatchItem> b,
                                     std::span<const ItemPair> pairs);

// By the library's numbers, where both sides have them ascending; else nothing. Incompatible pairs are left out.
std::vector<ItemPair> match_by_number(std::span<const MatchItem> a, std::span<const MatchItem> b);

// Without a common clock: both in order, one shifted against the other, so that most intervals agree; of equally good
// shifts that whose ends differ by nearest to `expected` (reference minus own, if `has_expected`), else the smallest
// shift.
std::vector<ItemPair> match_by_order(std::span<const MatchItem> a, std::span<const MatchItem> b, bool has_expected,
                                     Duration expected);

// On one clock (times of both count alike): ends within kEndsAgree; what is left between two such pairs by order, where
// the two were at it at the same time. REQUIRES: both ascend by end.
std::vector<ItemPair> match_by_time(std::span<const MatchItem> a, std::span<const MatchItem> b);

// What one rank sent another, and what that received, on one clock: both in order, one shifted against the other by at
// most 64, so that nothing is received before it is sent; of these the shift that leaves the fewest alone, then the one
// that takes the earliest receives. What is sent may lie in a buffer long before it is received.
std::vector<ItemPair> match_sends(std::span<const MatchItem> sent, std::span<const MatchItem> received);

}  // namespace memwall
