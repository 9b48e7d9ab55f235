#include "tests/support/scripted_backend.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <stdexcept>

namespace memwall {
namespace {
constexpr std::size_t kAlignment = 4096;
using Lock = std::lock_guard<std::recursive_mutex>;

// Poisoned: what an earlier test left there must not look right.
void* poisoned(Bytes bytes) {
  void* data = std::aligned_alloc(kAlignment, static_cast<std::size_t>(bytes));
  return std::memset(data, 0xa5, static_cast<std::size_t>(bytes));
}
}  // namespace

ScriptedBackend::ScriptedBackend(const ScriptedSettings& settings)
    : settings_(settings), file_(static_cast<std::size_t>(settings.file_capacity)) {}

std::vector<std::string> ScriptedBackend::calls() const {
  const Lock lock(mutex_);
  return calls_;
}

void ScriptedBackend::note(const std::string& call) {
  const Lock lock(mutex_);
  calls_.push_back(call);
}

void ScriptedBackend::prepare(const Trace& schedule, bool checked) {
  ++passes;
  checked_ = checked;
  if (checked) check_.reset();
  calls_ = {checked ? "prepare checked" : "prepare timed"};
  streams_.assign(schedule.streams.size(), {});
  for (std::size_t s = 0; s < streams_.size(); ++s) streams_[s].eager = schedule.streams[s].role == StreamRole::compute;
  events_.clear();
  times_.assign(schedule.ops.size(), {});
}

void ScriptedBackend::start_clock() {
  const Lock lock(mutex_);
  ticks_ = 0;
}

// Every look at the clock moves it.
Time ScriptedBackend::now() const {
  const Lock lock(mutex_);
  return nanoseconds(++ticks_);
}

std::optional<Address> ScriptedBackend::obtain(Bytes bytes) {
  if (device_used_ + bytes > settings_.device_capacity) return std::nullopt;
  device_used_ += bytes;
  ++segments;
  ++live_segments;
  return reinterpret_cast<Address>(poisoned(bytes));
}

void ScriptedBackend::give_back(Address address, Bytes bytes) {
  device_used_ -= bytes;
  --live_segments;
  std::free(reinterpret_cast<void*>(address));
}

Buffer ScriptedBackend::allocate_host(Bytes bytes, bool pinned) {
  if (host_used_ + bytes > settings_.host_capacity) throw std::bad_alloc();
  host_used_ += bytes;
  ++live_host;
  ++host_allocations;
  return {pinned ? PlaceClass::pinned : PlaceClass::pageable, poisoned(bytes), 0, bytes};
}

void ScriptedBackend::free_host(const Buffer& buffer) {
  host_used_ -= buffer.bytes;
  --live_host;
  std::free(buffer.data);
}

Buffer ScriptedBackend::allocate_file(Bytes bytes) {
  if (file_used_ + bytes > settings_.file_capacity) throw std::bad_alloc();
  const auto offset = static_cast<std::uint64_t>(file_used_);
  file_used_ += bytes;
  ++live_host;
  ++host_allocations;
  return {PlaceClass::file, nullptr, offset, bytes};
}

void ScriptedBackend::free_file(const Buffer&) { --live_host; }

char* ScriptedBackend::bytes_of(const Buffer& buffer) {
  return buffer.place_class == PlaceClass::file ? file_.data() + buffer.offset : static_cast<char*>(buffer.data);
}

void ScriptedBackend::fill(const Buffer& buffer, std::uint64_t tag) {
  fill_pattern(bytes_of(buffer), buffer.bytes, tag);
}

void ScriptedBackend::submit(std::uint16_t stream, std::function<void()> work) {
  const Lock lock(mutex_);
  streams_[stream].waiting.push_back(std::move(work));
  ++streams_[stream].submitted;
  if (streams_[stream].eager) run_until(stream, streams_[stream].submitted);
}

void ScriptedBackend::run_until(std::uint16_t stream, std::size_t count) {
  const Lock lock(mutex_);
  while (streams_[stream].done < count) {
    const std::function<void()> work = std::move(streams_[stream].waiting.front());
    streams_[stream].waiting.pop_front();
    ++streams_[stream].done;
    work();
  }
}

// A device op with its times.
void ScriptedBackend::work(OpId id, std::uint16_t stream, std::function<void()> what) {
  submit(stream, [this, id, what = std::move(what)] {
    times_[id].start = now();
    if (checked_) what();
    times_[id].end = now();
  });
}

void ScriptedBackend::kernel(OpId id, std::uint16_t stream, const KernelWork&, std::span<const Operand> operands) {
  note("kernel " + std::to_string(id));
  if (id == settings_.fails_at) throw std::runtime_error("kernel " + std::to_string(id) + " failed");
  work(id, stream, [this, id, own = std::vector<Operand>(operands.begin(), operands.end())] {
    check_.expect_all(id, own);
    fill_all(own);
  });
}

void ScriptedBackend::collective(OpId id, std::uint16_t stream, const CollectiveWork&,
                                 std::span<const Operand> operands) {
  note("collective " + std::to_string(id));
  work(id, stream, [this, id, own = std::vector<Operand>(operands.begin(), operands.end())] {
    check_.expect_all(id, own);
    fill_all(own);
  });
}

void ScriptedBackend::transfer(OpId id, std::uint16_t stream, const Operand& from, const Operand& to, Bytes bytes) {
  work(id, stream, [this, id, from, to, bytes] {
    check_.expect(id, "moves", from.buffer, bytes, from.expected);
    const Bytes moved = id == settings_.loses_word_at ? std::max<Bytes>(0, bytes - 8) : bytes;
    std::memcpy(bytes_of(to.buffer), bytes_of(from.buffer), static_cast<std::size_t>(moved));
  });
}

void ScriptedBackend::copy(OpId id, std::uint16_t stream, const Operand& from, const Operand& to, Bytes bytes) {
  note("copy " + std::to_string(id));
  transfer(id, stream, from, to, bytes);
}

void ScriptedBackend::storage_io(OpId id, std::uint16_t stream, const Operand& from, const Operand& to, Bytes bytes) {
  note("storage_io " + std::to_string(id));
  transfer(id, stream, from, to, bytes);
}

void ScriptedBackend::memset(OpId id, std::uint16_t stream, const Operand& to, Bytes) {
  note("memset " + std::to_string(id));
  work(id, stream, [to] { fill_all({&to, 1}); });
}

void ScriptedBackend::record(std::uint32_t event, std::uint16_t stream) {
  const Lock lock(mutex_);
  note("record " + std::to_string(event));
  events_[event] = {stream, streams_[stream].submitted};
}

void ScriptedBackend::wait(std::uint32_t event, std::uint16_t stream) {
  const Lock lock(mutex_);
  note("wait " + std::to_string(event));
  const auto found = events_.find(event);
  if (found == events_.end()) return;
  submit(stream, [this, position = found->second] { run_until(position.stream, position.count); });
}

void ScriptedBackend::synchronize_stream(std::uint16_t stream) {
  const Lock lock(mutex_);
  note("synchronize stream " + std::to_string(stream));
  run_until(stream, streams_[stream].submitted);
}

void ScriptedBackend::synchronize_event(std::uint32_t event) {
  const Lock lock(mutex_);
  note("synchronize event " + std::to_string(event));
  const auto found = events_.find(event);
  if (found != events_.end()) run_until(found->second.stream, found->second.count);
}

void ScriptedBackend::synchronize_device() {
  const Lock lock(mutex_);
  note("synchronize device");
  for (std::size_t s = 0; s < streams_.size(); ++s) run_until(static_cast<std::uint16_t>(s), streams_[s].submitted);
}

void ScriptedBackend::host_work(OpId id, Bytes, std::span<const Operand> operands) {
  const Lock lock(mutex_);
  note("host_work " + std::to_string(id));
  if (!checked_) return;
  check_.expect_all(id, operands);
  fill_all(operands);
}

void ScriptedBackend::device_times(std::vector<OpTimes>& times) {
  for (std::size_t i = 0; i < times.size(); ++i) {
    times[i].start = times_[i].start;
    times[i].end = times_[i].end;
  }
}

// A microsecond, and a nanosecond for every byte: distinct for distinct work.
Duration ScriptedBackend::kernel_alone(const KernelWork& work) {
  ++kernels_alone;
  return microseconds(1) + nanoseconds(work.bytes);
}

Duration ScriptedBackend::host_work_alone(Bytes dram_bytes) { return nanoseconds(dram_bytes); }

}  // namespace memwall
