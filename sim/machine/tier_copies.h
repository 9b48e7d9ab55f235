// How often a storage counts in a tier that ranks of several programs share in unequal numbers.
//
// A program may stand for several ranks (Rank::stands_for), each of which has its own data in a tier that it shares
// with others. Where as many ranks of each program share it, the tier is as large as one rank's part, and a storage
// counts once. Where three ranks of one program and six of another do, it is a third as large, and what the second
// program keeps there counts twice.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/machine/rank_machine.h"

namespace memwall {

class RankSharing;

// Into how many parts a tier of one GPU's machine is divided for the ranks that share it with this one: the greatest
// common divisor of the numbers of ranks of each program among them. REQUIRES: sharers != 1.
std::uint32_t parts_of_tier(RankSharing& sharing, std::size_t rank, std::uint32_t sharers, const std::string& what);

class TierCopies {
 public:
  // `ranks`: of that trace.
  TierCopies(const RankMachine& ranks, const Trace& trace);

  // Does every storage count once, everywhere?
  bool all_once() const { return copies_.empty(); }
  // `tier`: an index into RankMachine::tiers.
  std::uint32_t of(StorageId storage, std::size_t tier) const {
    return all_once() ? 1 : copies_[rank_of_storage_[storage] * tiers_ + tier];
  }

 private:
  std::size_t tiers_ = 0;
  std::vector<std::uint16_t> rank_of_storage_;
  std::vector<std::uint32_t> copies_;  // by rank, then tier; empty: all 1
};

}  // namespace memwall
