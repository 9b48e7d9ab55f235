// A job of three ranks that meet again and again, the second of which is slower than the others.
#pragma once

#include <utility>
#include <vector>

#include "tests/support/rank_program.h"

namespace memwall {

// Ranks 4, 5 and 6 of the job: kernels take 10 us, those of rank 5 take `slow`.
inline Trace straggling_ranks(Duration slow = microseconds(30)) {
  std::vector<RankProgram> ranks;
  for (std::uint32_t number = 4; number < 7; ++number) {
    RankAuthor author(number);
    for (std::uint32_t meeting = 0; meeting < 8; ++meeting) {
      author.kernel(number == 5 ? slow : microseconds(10));
      author.order(0, 1);
      author.meet(meeting, microseconds(8));
      author.order(1, 0);
    }
    ranks.push_back(std::move(author).finish());
  }
  return joined_ranks(std::move(ranks));
}

}  // namespace memwall
