#include "sim/side_by_side.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <thread>

namespace memwall {

void call_side_by_side(const std::vector<std::function<void()>>& calls, unsigned threads) {
  std::vector<std::exception_ptr> errors(calls.size());
  std::atomic<std::size_t> next = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < calls.size(); i = next++) {
      try {
        calls[i]();
      } catch (...) {
        errors[i] = std::current_exception();
      }
    }
  };
  {
    std::vector<std::jthread> workers;
    const std::size_t most = std::min<std::size_t>(std::max(1u, threads), calls.size());
    for (std::size_t i = 1; i < most; ++i) workers.emplace_back(work);
    work();
  }
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
}

}  // namespace memwall
