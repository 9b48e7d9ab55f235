#include "validate/replay/cuda/replay_streams.h"

#include <algorithm>
#include <exception>
#include <stdexcept>
#include <string>

#include "sim/error.h"

namespace memwall {
namespace {

void synchronize_one(ReplayStream& stream) {
  if (stream.device)
    stream.device->synchronize();
  else
    stream.storage->wait_for(stream.storage->submitted());
}

std::string on_stream(OpId id, std::uint16_t stream) {
  return "op " + std::to_string(id) + " is on stream " + std::to_string(stream);
}

}  // namespace

ReplayStreams::~ReplayStreams() {
  // Queues may wait for one another: none may go before all are through.
  try {
    synchronize_all();
  } catch (const std::exception&) {
  }
}

void ReplayStreams::prepare(const Trace& schedule, bool anew) {
  const std::vector<StreamEngine> engines = stream_engines(schedule);
  if (anew || engines != engines_) {
    streams_.clear();
    for (const StreamEngine engine : engines) {
      ReplayStream stream;
      if (engine == StreamEngine::device)
        stream.device = std::make_unique<CudaStream>();
      else
        stream.storage = std::make_unique<StorageQueue>(device_);
      streams_.push_back(std::move(stream));
    }
    engines_ = engines;
  }
  const auto records = std::count_if(schedule.ops.begin(), schedule.ops.end(),
                                     [](const Op& op) { return op.kind == OpKind::event_record; });
  events_.prepare(schedule.event_count, static_cast<std::size_t>(records));
}

ReplayStream& ReplayStreams::at(std::uint16_t stream) {
  if (stream >= streams_.size())
    throw std::runtime_error("stream " + std::to_string(stream) + " is none of the schedule that was prepared.");
  return streams_[stream];
}

cudaStream_t ReplayStreams::device_stream(OpId id, std::uint16_t stream) {
  const ReplayStream& found = at(stream);
  if (!found.device) throw UsageError(on_stream(id, stream) + ", which holds storage ops; expected another stream.");
  return found.device->get();
}

StorageQueue& ReplayStreams::storage_queue(OpId id, std::uint16_t stream) {
  const ReplayStream& found = at(stream);
  if (!found.storage) throw UsageError(on_stream(id, stream) + ", which holds no storage ops; expected one that does.");
  return *found.storage;
}

const StorageQueue* ReplayStreams::any_queue() const {
  for (const ReplayStream& stream : streams_)
    if (stream.storage) return stream.storage.get();
  return nullptr;
}

void ReplayStreams::record(std::uint32_t event, std::uint16_t stream) {
  const ReplayStream& on = at(stream);
  if (on.device)
    events_.record(event, on.device->get());
  else
    events_.record(event, *on.storage);
}

void ReplayStreams::wait(std::uint32_t event, std::uint16_t stream) {
  const RecordedEvent recorded = events_.latest(event);
  const ReplayStream& on = at(stream);
  if (recorded.event != nullptr) {
    if (on.device)
      on.device->wait(recorded.event->get());
    else
      on.storage->submit([awaited = recorded.event] { awaited->synchronize(); });
  } else if (recorded.queue != nullptr) {
    if (on.device)
      recorded.queue->hold(on.device->get(), recorded.number);
    else if (on.storage.get() != recorded.queue)  // a queue is in order by itself
      on.storage->submit([awaited = recorded] { awaited.queue->wait_for(awaited.number); });
  }
}

void ReplayStreams::synchronize(std::uint16_t stream) { synchronize_one(at(stream)); }

void ReplayStreams::synchronize_event(std::uint32_t event) {
  const RecordedEvent recorded = events_.latest(event);
  if (recorded.event != nullptr) recorded.event->synchronize();
  if (recorded.queue != nullptr) recorded.queue->wait_for(recorded.number);
}

void ReplayStreams::synchronize_all() {
  std::exception_ptr failure;
  for (ReplayStream& stream : streams_) {
    try {
      synchronize_one(stream);
    } catch (...) {
      if (!failure) failure = std::current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace memwall
