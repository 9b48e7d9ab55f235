#include "validate/replay/cuda/stand_alone.h"

#include <algorithm>
#include <vector>

#include "sim/quantile.h"

namespace memwall {

void StandAlone::hold() { counter_.hold(stream_.get(), ++held_); }
void StandAlone::release() { counter_.raise_to(held_); }

double StandAlone::median_seconds(std::uint64_t launches, const std::function<void(cudaStream_t)>& queue_kernel) {
  while (samples_.size() < kSamples) samples_.emplace_back();
  for (std::uint32_t i = 0; i < kWarmUps; ++i) queue_kernel(stream_.get());
  stream_.synchronize();
  const std::uint32_t together = static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(kMostHeld / std::max<std::uint64_t>(1, launches), 1, kSamples));
  for (std::uint32_t first = 0; first < kSamples; first += together) {
    const bool fits = launches <= kMostHeld;  // longer ones are not hurried by their calls
    if (fits) hold();
    try {
      for (std::uint32_t i = first; i < std::min(first + together, kSamples); ++i) {
        samples_[i].start.record(stream_.get());
        queue_kernel(stream_.get());
        samples_[i].end.record(stream_.get());
      }
    } catch (...) {
      release();
      throw;
    }
    release();
    stream_.synchronize();
  }
  std::vector<double> seconds;
  for (const Sample& sample : samples_) seconds.push_back(sample.end.seconds_since(sample.start));
  return upper_median(std::move(seconds));
}

}  // namespace memwall
