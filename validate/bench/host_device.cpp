#include "validate/bench/host_device.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "sim/trace/trace_builder.h"
#include "validate/replay/host_content.h"

namespace memwall {
namespace {

constexpr Bytes kLargest = MiB(256);

Trace schedule_of_streams() {
  TraceBuilder builder;
  builder.add_stream("compute", StreamRole::compute);
  builder.add_stream("in", StreamRole::copy);
  builder.add_stream("out", StreamRole::copy);
  builder.add_stream("storage", StreamRole::storage);
  for (int i = 0; i < kCopyStreams; ++i) builder.add_stream("copies " + std::to_string(i), StreamRole::copy);
  builder.trace().ops.resize(HostDevice::kOps);
  builder.trace().event_count = 8;
  return std::move(builder).finish();
}

Buffer obtain(Backend& backend, PlaceClass place, Bytes bytes) {
  if (place == PlaceClass::file) return backend.allocate_file(bytes);
  if (place != PlaceClass::device) return backend.allocate_host(bytes, place == PlaceClass::pinned);
  const auto address = backend.device_memory().obtain(bytes);
  if (!address) throw std::bad_alloc();
  return {PlaceClass::device, reinterpret_cast<void*>(*address), 0, bytes};
}

}  // namespace

HostBuffer::HostBuffer(Backend& backend, PlaceClass place, Bytes bytes) : backend_(backend) {
  try {
    buffer_ = obtain(backend, place, bytes);
  } catch (const std::bad_alloc&) {
    throw NotApplicable(std::to_string(bytes) + " bytes of memory are not free");
  }
}

HostBuffer::~HostBuffer() {
  switch (buffer_.place_class) {
    case PlaceClass::file:
      backend_.free_file(buffer_);
      break;
    case PlaceClass::device:
      backend_.device_memory().give_back(reinterpret_cast<Address>(buffer_.data), buffer_.bytes);
      break;
    default:
      backend_.free_host(buffer_);
  }
}

Buffer HostBuffer::first(Bytes bytes) const {
  Buffer part = buffer_;
  part.bytes = bytes;
  return part;
}

HostBackendSettings HostDevice::settings_of(Bytes capacity) {
  HostBackendSettings settings;
  settings.device_capacity = (capacity / MiB(1) + 2) * MiB(1);
  settings.file_bytes = 0;
  return settings;
}

HostDevice::HostDevice(const BenchmarkRun& run, Bytes capacity, Bytes file_bytes)
    : HostDevice([&] {
        HostBackendSettings settings = settings_of(capacity);
        settings.scratch = run.settings().scratch;
        settings.file_bytes = (file_bytes + 4095) / 4096 * 4096;
        return settings;
      }()) {}

HostDevice::HostDevice(const HostBackendSettings& settings) : schedule_(schedule_of_streams()) {
  backend_ = make_host_backend(settings);
  backend_->prepare(schedule_, false);
  backend_->start_clock();
}

HostDevice::Seconds HostDevice::times_of(OpId id) {
  backend_->synchronize_device();
  std::vector<OpTimes> times;
  backend_->device_times(times);
  return {to_seconds(times[id].start), to_seconds(times[id].end)};
}

std::vector<Bytes> sizes_up_to(Bytes largest, Bytes smallest) {
  std::vector<Bytes> sizes;
  for (Bytes bytes = smallest; bytes <= largest; bytes *= 4) sizes.push_back(bytes);
  if (sizes.empty()) sizes.push_back(largest);
  return sizes;
}

Bytes largest_host_buffer(const BenchmarkRun& run) {
  return std::min(kLargest, static_cast<Bytes>(run.settings().largest_buffer));
}

void verify_pattern(const Buffer& buffer, Bytes bytes, std::uint64_t tag, Measurement& m) {
  const PatternDifference difference = compare_pattern(buffer.data, bytes, tag);
  if (difference.words == 0) return;
  m.status = MeasurementStatus::failed;
  m.note = "wrong data: " + std::to_string(difference.words) + " words of " + std::to_string(bytes) +
           " bytes, the first at byte " + std::to_string(difference.first);
}

void poison(const Buffer& buffer, Bytes bytes) { std::memset(buffer.data, 0xdb, static_cast<std::size_t>(bytes)); }

}  // namespace memwall
