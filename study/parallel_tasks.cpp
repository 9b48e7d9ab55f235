#include "study/parallel_tasks.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>

namespace memwall {

void run_tasks(const std::vector<std::function<void()>>& tasks, unsigned jobs, Watch* watch) {
  std::vector<std::exception_ptr> errors(tasks.size()), stopped(tasks.size());
  std::atomic<std::size_t> next = 0, done = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < tasks.size(); i = next++) {
      try {
        tasks[i]();
      } catch (...) {
        errors[i] = std::current_exception();
      }
      try {
        if (watch != nullptr) watch->searched(static_cast<double>(++done) / static_cast<double>(tasks.size()));
      } catch (...) {  // nobody waits any more
        stopped[i] = std::current_exception();
        next = tasks.size();
      }
    }
  };
  {
    std::vector<std::jthread> workers;
    const std::size_t threads = std::min<std::size_t>(std::max(1u, jobs), tasks.size());
    for (std::size_t i = 1; i < threads; ++i) workers.emplace_back(work);
    work();
  }
  for (const std::vector<std::exception_ptr>* thrown : {&stopped, &errors})
    for (const std::exception_ptr& error : *thrown)
      if (error) std::rethrow_exception(error);
}

}  // namespace memwall
