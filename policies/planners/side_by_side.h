// Calls that know nothing of each other.
#pragma once

#include <functional>
#include <vector>

namespace memwall {

// All of them, on as many threads as the computer runs at once, this one included. What they do must not depend on
// their order: each writes to places of its own, and the caller joins these in the order of the calls, so that results
// are the same for any number of threads. Throws what the first of those that failed has thrown.
void call_side_by_side(const std::vector<std::function<void()>>& calls);

}  // namespace memwall
