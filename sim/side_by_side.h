// Calls that know nothing of each other, on several threads.
#pragma once

#include <functional>
#include <thread>
#include <vector>

namespace memwall {

// All of them, on at most `threads` threads (0: one), this one included. What they do must not depend on their order:
// each writes to places of its own, and the caller joins these in the order of the calls, so that results are the same
// for any number of threads. Throws what the first of those that failed has thrown; the others are made all the same.
void call_side_by_side(const std::vector<std::function<void()>>& calls,
                       unsigned threads = std::thread::hardware_concurrency());

}  // namespace memwall
