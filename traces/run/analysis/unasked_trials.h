// How long a step may be for changes of it to be simulated that nobody asked for.
#pragma once

#include <cstddef>

namespace memwall {

// In ops. Beyond it nobody waits for a dozen or two of simulations that were not asked for; the verdict says so.
inline constexpr std::size_t kOpsTriedUnasked = 50'000;

}  // namespace memwall
