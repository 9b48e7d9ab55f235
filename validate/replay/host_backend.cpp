#include "validate/replay/host_backend.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <stdexcept>
#include <thread>
#include <utility>

#include "sim/error.h"
#include "sim/quantile.h"
#include "validate/replay/arena.h"
#include "validate/replay/host_content.h"
#include "validate/replay/host_copy_engine.h"
#include "validate/replay/host_file.h"
#include "validate/replay/host_kernel.h"
#include "validate/replay/host_settings.h"
#include "validate/replay/host_stand_in.h"
#include "validate/replay/host_stream.h"

namespace memwall {
namespace {

using Clock = std::chrono::steady_clock;

bool on_device(const Buffer& buffer) { return buffer.place_class == PlaceClass::device; }
bool in_file(const Buffer& buffer) { return buffer.place_class == PlaceClass::file; }
bool is_pageable(const Buffer& buffer) { return buffer.place_class == PlaceClass::pageable; }

// Samples until there are five, and more while they are short.
double median_seconds(const std::function<double()>& sample) {
  constexpr std::size_t kFewest = 5, kMost = 51;
  constexpr double kEnough = 0.02;
  sample();
  sample();
  std::vector<double> seconds;
  for (double spent = 0; seconds.size() < kFewest || (spent < kEnough && seconds.size() < kMost);) {
    seconds.push_back(sample());
    spent += seconds.back();
  }
  return upper_median(std::move(seconds));
}

class HostBackend final : public Backend {
 public:
  explicit HostBackend(const HostBackendSettings& settings);
  ~HostBackend() override { run_on_cores(allowed_cores()); }

  std::string name() const override { return "host"; }
  Environment environment() const override;
  Bytes device_capacity() const override { return arena_.capacity(); }

  void prepare(const Trace& schedule, bool checked) override;
  void start_clock() override { epoch_ = Clock::now(); }
  Time now() const override { return since_epoch(Clock::now()); }

  SegmentSource& device_memory() override { return arena_; }
  Buffer allocate_host(Bytes bytes, bool pinned) override;
  void free_host(const Buffer& buffer) override;
  Buffer allocate_file(Bytes bytes) override;
  void free_file(const Buffer& buffer) override { file_.free(buffer.offset, buffer.bytes); }
  void fill(const Buffer& buffer, std::uint64_t tag) override;

  void kernel(OpId id, std::uint16_t stream, const KernelWork& work, std::span<const Operand> operands) override;
  void collective(OpId id, std::uint16_t stream, const CollectiveWork& work,
                  std::span<const Operand> operands) override;
  void copy(OpId id, std::uint16_t stream, const Operand& from, const Operand& to, Bytes bytes) override;
  void storage_io(OpId id, std::uint16_t stream, const Operand& from, const Operand& to, Bytes bytes) override;
  void memset(OpId id, std::uint16_t stream, const Operand& to, Bytes bytes) override;
  void record(std::uint32_t event, std::uint16_t stream) override;
  void wait(std::uint32_t event, std::uint16_t stream) override;

  void synchronize_stream(std::uint16_t stream) override;
  void synchronize_event(std::uint32_t event) override;
  void synchronize_device() override;
  void host_work(OpId id, Bytes dram_bytes, std::span<const Operand> operands) override;

  void device_times(std::vector<OpTimes>& times) override;
  const IntegrityCount& integrity() const override { return check_.count(); }

  Duration kernel_alone(const KernelWork& work) override;
  Duration host_work_alone(Bytes dram_bytes) override;
  Duration collective_alone(const CollectiveWork& work) override;

 private:
  Time since_epoch(Clock::time_point t) const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(t - epoch_);
  }
  void note(OpId id, Clock::time_point start, Clock::time_point end) {
    times_[id].start = since_epoch(start);
    times_[id].end = since_epoch(end);
  }
  EngineSpan move(const Buffer& from, const Buffer& to, Bytes bytes);
  void arrived(OpId id, const Operand& from, const Operand& to, Bytes bytes);
  double loop_seconds(const HostLoop& loop);
  std::shared_ptr<EventRecord> latest(std::uint32_t event);
  void failed(std::exception_ptr error);
  void throw_failure();

  HostBackendSettings settings_;
  Arena arena_;
  HostFile file_;
  CoreGate gate_;
  ScratchMemory scratch_;
  ContentCheck check_;
  HostCopyEngine to_device_, to_host_, within_;
  std::vector<int> kernel_cores_, other_cores_;

  std::mutex memory_mutex_;
  std::map<void*, MappedMemory> host_memory_;
  std::atomic<bool> lock_refused_{false};

  bool checked_ = false;
  Clock::time_point epoch_ = Clock::now();
  std::vector<OpTimes> times_;  // per op; each written by the thread that runs the op
  std::mutex event_mutex_;
  std::vector<std::shared_ptr<EventRecord>> events_;  // the most recent record of each; null = never recorded
  std::mutex failure_mutex_;
  std::exception_ptr failure_;
  std::vector<std::unique_ptr<HostStream>> streams_;  // last: their threads use all of the above
};

HostBackend::HostBackend(const HostBackendSettings& settings)
    : settings_(settings),
      arena_(settings.device_capacity),
      file_(settings.scratch, settings.file_bytes, {settings.file_read, settings.file_write}),
      gate_(settings.cores < allowed_cores().size() ? settings.cores : 0),
      scratch_(ScratchMemory::bytes_for(settings.device_capacity)) {
  other_cores_ = allowed_cores();
  kernel_cores_ = {other_cores_.front()};
  if (other_cores_.size() > 1) other_cores_.erase(other_cores_.begin());
  run_on_cores(other_cores_);  // the caller too, and the threads that it will start: no kernel displaces them
}

Environment HostBackend::environment() const {
  Environment environment = describe(settings_);
  environment.emplace_back("host_backend.pinned",
                           lock_refused_ ? "not locked: the system refused some of it" : "locked");
  const std::string method = file_.method();
  if (!method.empty()) environment.emplace_back("host_backend.file", method);
  return environment;
}

void HostBackend::prepare(const Trace& schedule, bool checked) {
  refuse_endless(schedule);
  streams_.clear();
  checked_ = checked;
  if (checked) check_.reset();
  failure_ = nullptr;
  times_.assign(schedule.ops.size(), {});
  events_.assign(schedule.event_count, nullptr);
  std::size_t kernel_streams = 0;
  for (const Stream& stream : schedule.streams) {
    const bool kernels = stream.role == StreamRole::compute || stream.role == StreamRole::communication;
    kernel_streams += kernels ? 1 : 0;
    streams_.push_back(std::make_unique<HostStream>(kernels ? kernel_cores_ : other_cores_,
                                                    [this](std::exception_ptr error) { failed(error); }));
  }
  scratch_.reserve(kernel_streams + 1);  // and one for CPU work
}

Buffer HostBackend::allocate_host(Bytes bytes, bool pinned) {
  MappedMemory memory(bytes);
  if (pinned && !memory.lock()) lock_refused_ = true;
  Buffer buffer{pinned ? PlaceClass::pinned : PlaceClass::pageable, memory.data(), 0, bytes};
  const std::lock_guard lock(memory_mutex_);
  host_memory_.emplace(buffer.data, std::move(memory));
  return buffer;
}

void HostBackend::free_host(const Buffer& buffer) {
  const std::lock_guard lock(memory_mutex_);
  host_memory_.erase(buffer.data);
}

Buffer HostBackend::allocate_file(Bytes bytes) { return {PlaceClass::file, nullptr, file_.allocate(bytes), bytes}; }

void HostBackend::fill(const Buffer& buffer, std::uint64_t tag) {
  if (!in_file(buffer)) return fill_pattern(buffer.data, buffer.bytes, tag);
  file_.fill(buffer.offset, buffer.bytes, tag);
}

void HostBackend::kernel(OpId id, std::uint16_t stream, const KernelWork& work, std::span<const Operand> operands) {
  streams_[stream]->submit([this, id, work, own = std::vector<Operand>(operands.begin(), operands.end())] {
    if (checked_) check_.expect_all(id, own);
    const auto start = Clock::now();
    run_loop(loop_of(work), scratch_, gate_);
    note(id, start, Clock::now());
    if (checked_) fill_all(own);
  });
}

void HostBackend::collective(OpId id, std::uint16_t stream, const CollectiveWork& work,
                             std::span<const Operand> operands) {
  streams_[stream]->submit([this, id, work, own = std::vector<Operand>(operands.begin(), operands.end())] {
    if (checked_) check_.expect_all(id, own);
    const auto start = Clock::now();
    if (!checked_) stand_in(work);
    note(id, start, Clock::now());
    if (checked_) fill_all(own);
  });
}

void HostBackend::memset(OpId id, std::uint16_t stream, const Operand& to, Bytes bytes) {
  streams_[stream]->submit([this, id, to, bytes] {
    const auto start = Clock::now();
    {
      const CoreGate::Pass pass(gate_);
      std::memset(to.buffer.data, 0, static_cast<std::size_t>(bytes));
    }
    note(id, start, Clock::now());
    if (checked_) fill_all({&to, 1});
  });
}

// One transfer on the engine of its direction.
EngineSpan HostBackend::move(const Buffer& from, const Buffer& to, Bytes bytes) {
  if (in_file(from)) return file_.read(to.data, bytes, from.offset);
  if (in_file(to)) return file_.write(from.data, bytes, to.offset);
  const double share = is_pageable(from) || is_pageable(to) ? settings_.pageable_share : 1;
  HostCopyEngine* engine = &within_;
  double rate = settings_.within_device;
  if (on_device(to) && !on_device(from)) {
    engine = &to_device_;
    rate = settings_.host_to_device * share;
  } else if (on_device(from) && !on_device(to)) {
    engine = &to_host_;
    rate = settings_.device_to_host * share;
  }
  return engine->copy(to.data, from.data, bytes, rate, settings_.copy_latency, gate_);
}

// What was moved in a checked pass is looked at where it has arrived. It is written anew only if the
// schedule gives it another name there: a lost byte stays lost.
void HostBackend::arrived(OpId id, const Operand& from, const Operand& to, Bytes bytes) {
  check_.expect(id, "has brought", to.buffer, bytes, from.expected);
  if (to.made != from.expected) fill_all({&to, 1});
}

void HostBackend::copy(OpId id, std::uint16_t stream, const Operand& from, const Operand& to, Bytes bytes) {
  if (in_file(from.buffer) || in_file(to.buffer))
    throw UsageError("op " + std::to_string(id) + " is a copy to or from a file; only storage operations reach files.");
  if (bytes > from.buffer.bytes || bytes > to.buffer.bytes)
    throw UsageError("op " + std::to_string(id) + " copies " + std::to_string(bytes) +
                     " bytes, more than its storages have.");
  streams_[stream]->submit([this, id, from, to, bytes] {
    if (checked_) check_.expect(id, "copies", from.buffer, bytes, from.expected);
    const EngineSpan span = move(from.buffer, to.buffer, bytes);
    note(id, span.start, span.end);
    if (checked_) arrived(id, from, to, bytes);
  });
}

void HostBackend::storage_io(OpId id, std::uint16_t stream, const Operand& from, const Operand& to, Bytes bytes) {
  if (in_file(from.buffer) == in_file(to.buffer) || on_device(from.buffer) || on_device(to.buffer))
    throw UsageError("op " + std::to_string(id) +
                     " is a storage operation that does not go between host memory and the file, as the host back end "
                     "requires.");
  if (bytes > from.buffer.bytes || bytes > to.buffer.bytes)
    throw UsageError("op " + std::to_string(id) + " moves " + std::to_string(bytes) +
                     " bytes, more than its storages have.");
  streams_[stream]->submit([this, id, from, to, bytes] {
    if (checked_) check_.expect(id, "stores", from.buffer, bytes, from.expected);
    const EngineSpan span = move(from.buffer, to.buffer, bytes);
    note(id, span.start, span.end);
    if (checked_) arrived(id, from, to, bytes);
  });
}

void HostBackend::record(std::uint32_t event, std::uint16_t stream) {
  auto record = std::make_shared<EventRecord>();
  {
    const std::lock_guard lock(event_mutex_);
    events_[event] = record;
  }
  streams_[stream]->submit([record] { record->finish(); });
}

std::shared_ptr<EventRecord> HostBackend::latest(std::uint32_t event) {
  const std::lock_guard lock(event_mutex_);
  return events_[event];
}

void HostBackend::wait(std::uint32_t event, std::uint16_t stream) {
  if (auto record = latest(event)) streams_[stream]->submit([record] { record->wait(); });
}

void HostBackend::synchronize_stream(std::uint16_t stream) {
  streams_[stream]->synchronize();
  throw_failure();
}

void HostBackend::synchronize_event(std::uint32_t event) {
  if (const auto record = latest(event)) record->wait();
  throw_failure();
}

void HostBackend::synchronize_device() {
  for (const auto& stream : streams_) stream->synchronize();
  throw_failure();
}

void HostBackend::host_work(OpId id, Bytes dram_bytes, std::span<const Operand> operands) {
  if (checked_) check_.expect_all(id, operands);
  run_loop(loop_of_host_work(dram_bytes), scratch_, gate_);
  if (checked_) fill_all(operands);
}

void HostBackend::device_times(std::vector<OpTimes>& times) {
  times.resize(std::max(times.size(), times_.size()));
  for (std::size_t i = 0; i < times_.size(); ++i) {
    times[i].start = times_[i].start;
    times[i].end = times_[i].end;
  }
}

void HostBackend::failed(std::exception_ptr error) {
  const std::lock_guard lock(failure_mutex_);
  if (!failure_) failure_ = error;
}

void HostBackend::throw_failure() {
  std::exception_ptr error;
  {
    const std::lock_guard lock(failure_mutex_);
    std::swap(error, failure_);
  }
  if (!error) return;
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& reason) {
    throw std::runtime_error(std::string("a stream of the host back end failed: ") + reason.what());
  }
}

double HostBackend::loop_seconds(const HostLoop& loop) {
  const auto start = Clock::now();
  run_loop(loop, scratch_, gate_);
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Duration HostBackend::kernel_alone(const KernelWork& work) {
  double seconds = 0;
  std::thread([&] {
    run_on_cores(kernel_cores_);
    seconds = median_seconds([&] { return loop_seconds(loop_of(work)); });
  }).join();
  return from_seconds(seconds);
}

Duration HostBackend::host_work_alone(Bytes dram_bytes) {
  return from_seconds(median_seconds([&] { return loop_seconds(loop_of_host_work(dram_bytes)); }));
}

Duration HostBackend::collective_alone(const CollectiveWork& work) {
  double seconds = 0;
  std::thread([&] {
    run_on_cores(kernel_cores_);
    wake_punctually();
    seconds = median_seconds([&] {
      const auto start = Clock::now();
      stand_in(work);
      return std::chrono::duration<double>(Clock::now() - start).count();
    });
  }).join();
  return from_seconds(seconds);
}

}  // namespace

std::unique_ptr<Backend> make_host_backend(const HostBackendSettings& settings) {
  check_host_settings(settings);
  try {
    return std::make_unique<HostBackend>(settings);
  } catch (const std::bad_alloc&) {
    throw UsageError("the host back end's device needs " + std::to_string(settings.device_capacity) +
                     " bytes of memory, which the system refuses.");
  }
}

}  // namespace memwall
