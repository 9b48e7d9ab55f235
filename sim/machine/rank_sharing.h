// Which ranks of a trace have a link or a memory in common, the ranks that their programs stand for counted.
// Internal to sim/machine.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "sim/trace/trace.h"

namespace memwall {

// Ranks of one program: its index in Trace::rank_table, and how many.
struct RanksOfProgram {
  std::size_t program = 0;
  std::uint32_t count = 0;
  auto operator<=>(const RanksOfProgram&) const = default;
};

class RankSharing {
 public:
  // REQUIRES: rank_table is not empty; `trace` outlives this. Throws UsageError where a number stands twice.
  explicit RankSharing(const Trace& trace);

  // Who is among the `sharers` GPUs that the rank is one of, by program. `what` is for the sentence. Throws UsageError
  // where the ranks that one program stands for are not in equal places. REQUIRES: sharers > 0.
  const std::vector<RanksOfProgram>& behind(std::size_t rank, std::uint32_t sharers, const std::string& what);
  // How many of them run the rank's own program.
  std::uint32_t alike(std::size_t rank, std::uint32_t sharers, const std::string& what);
  // The first rank for which the same is true. Of 0 sharers all are alike.
  std::size_t first_alike(std::size_t rank, std::uint32_t sharers, const std::string& what);

 private:
  struct Member {
    std::uint32_t number = 0;
    std::size_t rank = 0;
  };
  struct Sharing {
    std::uint32_t sharers = 0;
    std::vector<std::vector<RanksOfProgram>> behind;  // by rank
    std::vector<std::size_t> first;                   // by rank: the first with an equal list
  };
  const Sharing& sharing_of(std::uint32_t sharers, const std::string& what);
  Sharing count(std::uint32_t sharers, const std::string& what) const;

  const Trace& trace_;
  std::vector<Member> members_;  // by number
  std::deque<Sharing> known_;
};

}  // namespace memwall
