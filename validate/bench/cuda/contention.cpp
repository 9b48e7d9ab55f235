#include "validate/bench/cuda/contention.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace memwall {

void Contention::time_alone(Contender& contender) {
  const auto one = [&] { contender.submit(timed_stream_.get()); };
  one();  // what is set up on first use
  timed_stream_.synchronize();
  contender.seconds = seconds_alone(contender, 1);
}

double Contention::seconds_alone(const Contender& contender, unsigned operations) {
  return timing_.seconds_per_operation(timed_stream_.get(), operations, [&] {
    for (unsigned i = 0; i < operations; ++i) contender.submit(timed_stream_.get());
  });
}

double Contention::seconds_per_operation(const Contender& timed, unsigned operations, const Contender& busy) {
  // Twice as long as it would take alone, as the two slow each other down.
  const double share = 2 * operations * timed.seconds / std::max(busy.seconds, 1e-7);
  double needed = std::ceil(share) + 2;
  while (needed + operations + 8 <= kMostQueued) {
    const auto queued = static_cast<unsigned>(needed);
    const double total =
        timing_.seconds(busy_stream_.get(), [&](const StreamGate&, const CudaEvent& begin, const CudaEvent& end) {
          busy.submit(busy_stream_.get());
          first_.record(busy_stream_.get());
          for (unsigned i = 0; i < queued; ++i) busy.submit(busy_stream_.get());
          busy_end_.record(busy_stream_.get());
          timed_stream_.wait(first_.get());
          begin.record(timed_stream_.get());
          for (unsigned i = 0; i < operations; ++i) timed.submit(timed_stream_.get());
          end.record(timed_stream_.get());
        });
    if (timing_.seconds_after_end(busy_end_) > 0) return total / operations;
    needed *= 2;
  }
  throw std::runtime_error("what should keep the device busy throughout ended too early, even when " +
                           std::to_string(kMostQueued) + " operations were queued.");
}

}  // namespace memwall
