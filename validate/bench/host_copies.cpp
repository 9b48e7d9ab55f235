// Copies of the host back end: paced to its stated rates, through its engines.
#include "validate/bench/host_device.h"

namespace memwall {
namespace {

// One copy at a time, from one place to another.
void measure_path(BenchmarkRun& run, PlaceClass from_place, PlaceClass to_place) {
  const Bytes largest = largest_host_buffer(run);
  HostDevice device(run, 2 * largest);
  const HostBuffer from(device.backend(), from_place, largest), to(device.backend(), to_place, largest);
  const std::uint16_t stream = to_place == PlaceClass::device ? kInStream : kOutStream;
  const std::uint64_t tag = run.settings().seed;
  device.backend().fill(from.get(), tag);
  for (const Bytes bytes : sizes_up_to(largest)) {
    if (run.out_of_time()) return;
    Measurement m = run.row({{"bytes", std::to_string(bytes)}});
    m.bytes = static_cast<double>(bytes);
    poison(to.get(), bytes);
    run.sample(m, [&] {
      device.backend().copy(0, stream, from.read(bytes), to.written(bytes), bytes);
      return device.times_of(0).length();
    });
    verify_pattern(to.get(), bytes, tag, m);
    run.report(m);
  }
}

void copy_host_hbm_pinned(BenchmarkRun& run) { measure_path(run, PlaceClass::pinned, PlaceClass::device); }
void copy_hbm_host_pinned(BenchmarkRun& run) { measure_path(run, PlaceClass::device, PlaceClass::pinned); }
void copy_host_hbm_pageable(BenchmarkRun& run) { measure_path(run, PlaceClass::pageable, PlaceClass::device); }
void copy_hbm_host_pageable(BenchmarkRun& run) { measure_path(run, PlaceClass::device, PlaceClass::pageable); }
void copy_hbm_hbm(BenchmarkRun& run) { measure_path(run, PlaceClass::device, PlaceClass::device); }

// One direction's copies: op numbers, stream and memory.
struct CopyLane {
  CopyLane(HostDevice& device, bool to_device, Bytes bytes)
      : on_device(device.backend(), PlaceClass::device, bytes),
        on_host(device.backend(), PlaceClass::pinned, bytes),
        inward(to_device) {}
  const HostBuffer& from() const { return inward ? on_host : on_device; }
  const HostBuffer& to() const { return inward ? on_device : on_host; }
  void copy(HostDevice& device, OpId id, Bytes bytes) const {
    device.backend().copy(id, inward ? kInStream : kOutStream, from().read(bytes), to().written(bytes), bytes);
  }

  HostBuffer on_device, on_host;
  bool inward;
};

// Seconds of one copy of `timed` that begins after `busy` has begun and ends before it ends.
double seconds_beside(HostDevice& device, const CopyLane& timed, const CopyLane& busy, Bytes bytes, Bytes busy_bytes) {
  constexpr OpId kTimed = 0, kBefore = 1, kBeside = 2;
  constexpr OpId kMostBeside = HostDevice::kOps - kBeside;
  for (OpId count = 2; count <= kMostBeside; count *= 2) {
    Backend& backend = device.backend();
    const std::uint16_t busy_stream = busy.inward ? kInStream : kOutStream;
    busy.copy(device, kBefore, std::min<Bytes>(busy_bytes, KiB(64)));
    backend.record(0, busy_stream);
    for (OpId i = 0; i < count; ++i) busy.copy(device, kBeside + i, busy_bytes);
    backend.wait(0, timed.inward ? kInStream : kOutStream);
    timed.copy(device, kTimed, bytes);
    const auto seconds = device.times_of(kTimed);
    if (device.times_of(kBeside + count - 1).end >= seconds.end) return seconds.length();
  }
  throw std::runtime_error("the other direction could not be kept busy for as long as a copy of " +
                           std::to_string(bytes) + " bytes takes.");
}

void copy_both_pinned(BenchmarkRun& run) {
  const Bytes largest = largest_host_buffer(run);
  HostDevice device(run, 2 * largest);
  const std::uint64_t tag = run.settings().seed;
  for (const bool to_device : {true, false}) {
    const CopyLane timed(device, to_device, largest), busy(device, !to_device, largest);
    device.backend().fill(timed.from().get(), tag);
    device.backend().fill(busy.from().get(), tag + 1);
    for (const Bytes bytes : sizes_up_to(largest)) {
      if (run.out_of_time()) return;
      Measurement m =
          run.row({{"bytes", std::to_string(bytes)}, {"direction", to_device ? "host_to_device" : "device_to_host"}});
      m.bytes = static_cast<double>(bytes);
      const Bytes busy_bytes = std::min(largest, std::max(bytes, KiB(256)));
      poison(timed.to().get(), bytes);
      poison(busy.to().get(), busy_bytes);
      run.sample(m, [&] { return seconds_beside(device, timed, busy, bytes, busy_bytes); });
      verify_pattern(timed.to().get(), bytes, tag, m);
      verify_pattern(busy.to().get(), busy_bytes, tag + 1, m);
      run.report(m);
    }
  }
}

// Copies of `part` bytes each from `streams` streams at once: from the first start to the last end.
double seconds_of_streams(HostDevice& device, const CopyLane& lane, Bytes part, std::uint16_t streams) {
  const auto piece = [&](const HostBuffer& buffer, std::uint16_t i) {
    Buffer b = buffer.get();
    b.data = static_cast<std::byte*>(b.data) + part * i;
    b.bytes = part;
    return b;
  };
  for (std::uint16_t i = 0; i < streams; ++i)
    device.backend().copy(i, static_cast<std::uint16_t>(kMoreStreams + i), {piece(lane.from(), i), 1, 0},
                          {piece(lane.to(), i), 0, 1}, part);
  HostDevice::Seconds all = device.times_of(0);
  for (OpId i = 1; i < streams; ++i) {
    const auto one = device.times_of(i);
    all = {std::min(all.start, one.start), std::max(all.end, one.end)};
  }
  return all.length();
}

void measure_streams(BenchmarkRun& run, bool to_device) {
  const Bytes largest = std::min(largest_host_buffer(run), MiB(16));
  HostDevice device(run, largest);
  const CopyLane lane(device, to_device, largest);
  const std::uint64_t tag = run.settings().seed;
  device.backend().fill(lane.from().get(), tag);
  for (const Bytes bytes : sizes_up_to(largest, KiB(64)))
    for (std::uint16_t streams = 1; streams <= kCopyStreams; streams *= 2) {
      if (run.out_of_time()) return;
      Measurement m = run.row({{"bytes", std::to_string(bytes)}, {"streams", std::to_string(streams)}});
      m.bytes = static_cast<double>(bytes);
      poison(lane.to().get(), bytes);
      run.sample(m, [&] { return seconds_of_streams(device, lane, bytes / streams, streams); });
      verify_pattern(lane.to().get(), bytes / streams * streams, tag, m);
      run.report(m);
    }
}

void copy_host_hbm_streams(BenchmarkRun& run) { measure_streams(run, true); }
void copy_hbm_host_streams(BenchmarkRun& run) { measure_streams(run, false); }

const RegisterBenchmark registered_copy_host_hbm_pinned{{"copy_host_hbm_pinned",
                                                         "copies of pinned host memory into the arena, by size",
                                                         BenchmarkPlace::host, 10, copy_host_hbm_pinned}};
const RegisterBenchmark registered_copy_hbm_host_pinned{{"copy_hbm_host_pinned",
                                                         "copies of the arena to pinned host memory, by size",
                                                         BenchmarkPlace::host, 10, copy_hbm_host_pinned}};
const RegisterBenchmark registered_copy_both_pinned{{"copy_both_pinned",
                                                     "copies in one direction while the other is busy throughout",
                                                     BenchmarkPlace::host, 12, copy_both_pinned}};
const RegisterBenchmark registered_copy_hbm_hbm{
    {"copy_hbm_hbm", "copies within the arena, by size", BenchmarkPlace::host, 20, copy_hbm_hbm}};
const RegisterBenchmark registered_copy_host_hbm_pageable{{"copy_host_hbm_pageable",
                                                           "copies of ordinary host memory into the arena, by size",
                                                           BenchmarkPlace::host, 30, copy_host_hbm_pageable}};
const RegisterBenchmark registered_copy_hbm_host_pageable{{"copy_hbm_host_pageable",
                                                           "copies of the arena to ordinary host memory, by size",
                                                           BenchmarkPlace::host, 30, copy_hbm_host_pageable}};
const RegisterBenchmark registered_copy_host_hbm_streams{{"copy_host_hbm_streams",
                                                          "copies into the arena from 1, 2 and 4 streams: one engine",
                                                          BenchmarkPlace::host, 40, copy_host_hbm_streams}};
const RegisterBenchmark registered_copy_hbm_host_streams{{"copy_hbm_host_streams",
                                                          "copies to the host from 1, 2 and 4 streams: one engine",
                                                          BenchmarkPlace::host, 40, copy_hbm_host_streams}};

}  // namespace
}  // namespace memwall
