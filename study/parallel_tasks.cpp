#include "study/parallel_tasks.h"

#include <atomic>
#include <exception>

#include "sim/side_by_side.h"

namespace memwall {

void run_tasks(const std::vector<std::function<void()>>& tasks, unsigned jobs, Watch* watch) {
  std::vector<std::exception_ptr> stopped(tasks.size());
  std::atomic<std::size_t> done = 0;
  std::atomic<bool> nobody_waits = false;
  std::vector<std::function<void()>> calls;
  for (std::size_t i = 0; i < tasks.size(); ++i)
    calls.emplace_back([&, i] {
      if (nobody_waits) return;
      std::exception_ptr failed;
      try {
        tasks[i]();
      } catch (...) {
        failed = std::current_exception();
      }
      try {
        if (watch != nullptr) watch->searched(static_cast<double>(++done) / static_cast<double>(tasks.size()));
      } catch (...) {
        stopped[i] = std::current_exception();
        nobody_waits = true;
      }
      if (failed) std::rethrow_exception(failed);
    });
  std::exception_ptr failed;
  try {
    call_side_by_side(calls, jobs);
  } catch (...) {
    failed = std::current_exception();
  }
  for (const std::exception_ptr& error : stopped)
    if (error) std::rethrow_exception(error);
  if (failed) std::rethrow_exception(failed);
}

}  // namespace memwall
