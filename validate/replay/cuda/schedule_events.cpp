#include "validate/replay/cuda/schedule_events.h"

#include <stdexcept>
#include <string>

namespace memwall {

void ScheduleEvents::prepare(std::size_t events, std::size_t records) {
  const std::lock_guard lock(mutex_);
  latest_.assign(events, {});
  while (pool_.size() < records) pool_.emplace_back(false);
  used_ = 0;
}

void ScheduleEvents::record(std::uint32_t event, cudaStream_t stream) {
  const CudaEvent* fresh = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (used_ == pool_.size()) pool_.emplace_back(false);
    fresh = &pool_[used_++];
  }
  fresh->record(stream);
  set(event, {fresh, nullptr, 0});
}

void ScheduleEvents::record(std::uint32_t event, StorageQueue& queue) {
  set(event, {nullptr, &queue, queue.submitted()});
}

RecordedEvent ScheduleEvents::latest(std::uint32_t event) const {
  const std::lock_guard lock(mutex_);
  if (event >= latest_.size())
    throw std::runtime_error("event " + std::to_string(event) + " is none of the schedule's.");
  return latest_[event];
}

void ScheduleEvents::set(std::uint32_t event, const RecordedEvent& recorded) {
  const std::lock_guard lock(mutex_);
  if (event >= latest_.size())
    throw std::runtime_error("event " + std::to_string(event) + " is none of the schedule's.");
  latest_[event] = recorded;
}

}  // namespace memwall
