#include "validate/replay/host_copy_engine.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace memwall {
namespace {

using Clock = std::chrono::steady_clock;

constexpr Bytes kPiece = KiB(256);

// Rounded up: a copy may be late, never early.
std::chrono::nanoseconds after(Duration latency, Bytes bytes, double bytes_per_second) {
  const double seconds = bytes_per_second > 0 ? static_cast<double>(bytes) / bytes_per_second : 0;
  return std::chrono::nanoseconds(static_cast<std::int64_t>(std::ceil(seconds * 1e9)) + (latency.count() + 999) / 1000);
}

}  // namespace

EngineSpan HostCopyEngine::run(const std::function<void(Clock::time_point)>& work) {
  struct Turn {
    std::atomic<std::uint64_t>& served;
    ~Turn() {
      served.fetch_add(1, std::memory_order_release);
      served.notify_all();
    }
  };
  const std::uint64_t ticket = next_.fetch_add(1, std::memory_order_relaxed);
  for (std::uint64_t now = served_.load(std::memory_order_acquire); now != ticket;
       now = served_.load(std::memory_order_acquire))
    served_.wait(now, std::memory_order_acquire);
  const Turn turn{served_};
  EngineSpan span;
  span.start = Clock::now();
  work(span.start);
  span.end = Clock::now();
  return span;
}

EngineSpan HostCopyEngine::copy(void* to, const void* from, Bytes bytes, double bytes_per_second, Duration latency,
                                CoreGate& gate) {
  return run([&](Clock::time_point start) {
    if (bytes == 0) wait_until(start + after(latency, 0, 0));
    for (Bytes done = 0; done < bytes;) {
      const Bytes piece = std::min(kPiece, bytes - done);
      {
        const CoreGate::Pass pass(gate);
        std::memcpy(static_cast<std::byte*>(to) + done, static_cast<const std::byte*>(from) + done,
                    static_cast<std::size_t>(piece));
      }
      done += piece;
      const auto due = start + after(latency, done, bytes_per_second);
      // Only the end must be met well; a piece in between may be late, the next ones make up for it.
      done < bytes ? sleep_until(due) : wait_until(due);
    }
  });
}

}  // namespace memwall
