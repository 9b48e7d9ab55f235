// Tasks that know nothing of each other, on several threads.
#pragma once

#include <functional>
#include <vector>

#include "study/watch.h"

namespace memwall {

// All of them, on at most `jobs` threads, this one included; `watch` is told the share that is done (null = nobody).
// Throws what the first of the tasks that failed has thrown, whatever the number of threads; what `watch` throws before
// that, and no further task is begun then.
void run_tasks(const std::vector<std::function<void()>>& tasks, unsigned jobs, Watch* watch = nullptr);

}  // namespace memwall
