#include "validate/replay/host_stand_in.h"

#include <algorithm>
#include <chrono>

#include "validate/replay/host_computer.h"

namespace memwall {

void stand_in(const CollectiveWork& work) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::microseconds kTurn(100);
  const auto busy = std::chrono::duration_cast<Clock::duration>(kTurn * work.share);
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(work.duration);
  for (auto turn = Clock::now(); turn < end; turn += kTurn) {
    while (Clock::now() < std::min(turn + busy, end)) {
    }
    wait_until(std::min<Clock::time_point>(turn + kTurn, end));
  }
}

}  // namespace memwall
