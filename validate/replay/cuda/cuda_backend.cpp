#include "validate/replay/cuda_backend.h"
#include "sim/quantile.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <utility>

#include "sim/error.h"
#include "validate/replay/cuda/cuda_handles.h"
#include "validate/replay/cuda/device_content.h"
#include "validate/replay/cuda/device_segments.h"
#include "validate/replay/cuda/kernel_plans.h"
#include "validate/replay/cuda/op_clock.h"
#include "validate/replay/cuda/replay_host_memory.h"
#include "validate/replay/cuda/replay_streams.h"
#include "validate/replay/cuda/stand_alone.h"
#include "validate/replay/cuda/synthetic_kernels.h"
#include "validate/replay/host_content.h"
#include "validate/replay/host_file.h"
#include "validate/replay/host_workers.h"
#include "validate/replay/mapped_memory.h"

namespace memwall {
namespace {

// Device memory that is left to the driver: kernels of cuBLASLt that are loaded when first used, events, workspaces.
constexpr Bytes kMargin = MiB(768);

bool in_file(const Buffer& buffer) { return buffer.place_class == PlaceClass::file; }
bool on_device(const Buffer& buffer) { return buffer.place_class == PlaceClass::device; }
bool in_host_memory(const Buffer& buffer) { return !in_file(buffer) && !on_device(buffer); }

std::string op_text(OpId id) { return "op " + std::to_string(id); }

KernelWork work_of(const Op& op) { return {op.operator_class, op.data_type, op.flops, op.bytes}; }

// `timed` false: nothing is waited for.
void launch_stand_in(const CollectiveWork& work, int multiprocessors, bool timed, cudaStream_t stream) {
  launch_occupy(timed ? static_cast<std::uint64_t>(work.duration.count() / 1000) : 0,
                multiprocessors_of(work, multiprocessors), stream);
}

// Throws UsageError unless both sides have `bytes`.
void require_room(OpId id, const Operand& from, const Operand& to, Bytes bytes) {
  if (bytes <= from.buffer.bytes && bytes <= to.buffer.bytes) return;
  throw UsageError(op_text(id) + " moves " + std::to_string(bytes) + " bytes; its storages have " +
                   std::to_string(from.buffer.bytes) + " and " + std::to_string(to.buffer.bytes) + ".");
}

cudaMemcpyKind kind_of(const Buffer& from, const Buffer& to) {
  if (on_device(from)) return on_device(to) ? cudaMemcpyDeviceToDevice : cudaMemcpyDeviceToHost;
  return on_device(to) ? cudaMemcpyHostToDevice : cudaMemcpyHostToHost;
}

class CudaBackend final : public Backend {
 public:
  explicit CudaBackend(const CudaBackendSettings& settings);

  std::string name() const override { return "cuda"; }
  Environment environment() const override;
  Bytes device_capacity() const override { return capacity_; }

  void prepare(const Trace& schedule, bool checked) override;
  void start_clock() override;
  Time now() const override { return clock_.now(); }

  SegmentSource& device_memory() override { return segments_; }
  Buffer allocate_host(Bytes bytes, bool pinned) override;
  void free_host(const Buffer& buffer) override { host_memory_.free(buffer); }
  Buffer allocate_file(Bytes bytes) override;
  void free_file(const Buffer& buffer) override { file_.free(buffer.offset, buffer.bytes); }
  void fill(const Buffer& buffer, std::uint64_t tag) override;

  void kernel(OpId id, std::uint16_t stream, const KernelWork& work, std::span<const Operand> operands) override;
  void collective(OpId id, std::uint16_t stream, const CollectiveWork& work,
                  std::span<const Operand> operands) override;
  void copy(OpId id, std::uint16_t stream, const Operand& from, const Operand& to, Bytes bytes) override;
  void storage_io(OpId id, std::uint16_t stream, const Operand& from, const Operand& to, Bytes bytes) override;
  void memset(OpId id, std::uint16_t stream, const Operand& to, Bytes bytes) override;
  void record(std::uint32_t event, std::uint16_t stream) override { current().record(event, stream); }
  void wait(std::uint32_t event, std::uint16_t stream) override { current().wait(event, stream); }

  void synchronize_stream(std::uint16_t stream) override { current().synchronize(stream); }
  void synchronize_event(std::uint32_t event) override { current().synchronize_event(event); }
  // Not by cudaDeviceSynchronize, which might keep storage queues from the driver.
  void synchronize_device() override { current().synchronize_all(); }
  void host_work(OpId id, Bytes dram_bytes, std::span<const Operand> operands) override;

  void device_times(std::vector<OpTimes>& times) override;
  const IntegrityCount& integrity() const override;

  Duration kernel_alone(const KernelWork& work) override;
  Duration host_work_alone(Bytes dram_bytes) override;
  Duration collective_alone(const CollectiveWork& work) override;

 private:
  // Makes the device current in the calling thread, as the executor's threads are not this class's.
  void use_device() const { check(cudaSetDevice(settings_.device), "cudaSetDevice"); }
  ReplayStreams& current() {
    use_device();
    return streams_;
  }
  void require_file(const Trace& schedule) const;
  void plan_kernels(const Trace& schedule);
  void move_file(OpId id, const Operand& from, const Operand& to, Bytes bytes);

  CudaBackendSettings settings_;
  KernelPlans plans_;
  DeviceContent content_;
  ContentCheck host_content_;
  OpClock clock_;
  StandAlone alone_;
  CudaStream service_;
  HostFile file_;
  HostWorkers workers_{0};
  DeviceSegments segments_;
  Bytes capacity_ = 0;
  int multiprocessors_ = 0;
  bool checked_ = false;
  mutable IntegrityCount integrity_;  // as last put together
  ReplayHostMemory host_memory_;
  ReplayStreams streams_;  // last: their threads use all of the above
};

CudaBackend::CudaBackend(const CudaBackendSettings& settings)
    : settings_(settings),
      file_(settings.scratch, settings.file_bytes),
      segments_(settings.device, [this] { synchronize_device(); }),
      streams_(settings.device) {
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  check(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, settings.device),
        "cudaDeviceGetAttribute");
  capacity_ = std::max<Bytes>(0, static_cast<Bytes>(free) - std::min<Bytes>(kMargin, static_cast<Bytes>(total / 16)));
}

Environment CudaBackend::environment() const {
  Environment environment = cuda_environment(settings_.device);
  for (auto& entry : plans_.environment()) environment.push_back(std::move(entry));
  environment.emplace_back("clock_uncertainty_ns", std::to_string(clock_.uncertainty().count() / 1000));
  if (const char* queues = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS"))
    environment.emplace_back("cuda.device_max_connections", queues);
  if (const StorageQueue* queue = streams_.any_queue())
    environment.emplace_back("storage_wait", queue->by_memory_operation() ? "memory operation" : "kernel");
  if (const std::string method = file_.method(); !method.empty()) environment.emplace_back("file", method);
  return environment;
}

void CudaBackend::require_file(const Trace& schedule) const {
  const auto found = std::find_if(schedule.ops.begin(), schedule.ops.end(),
                                  [](const Op& op) { return op.kind == OpKind::storage_io; });
  if (found == schedule.ops.end() || !settings_.scratch.empty()) return;
  throw UsageError(op_text(static_cast<OpId>(found - schedule.ops.begin())) +
                   " of the schedule moves data to or from the tier \"nvme\", which the back end \"cuda\" has as a "
                   "file: give a folder for it (--scratch).");
}

// Descriptors, algorithms and workspaces, so that no pass has to wait for them.
void CudaBackend::plan_kernels(const Trace& schedule) {
  for (const Op& op : schedule.ops) {
    if (op.kind != OpKind::kernel) continue;
    plans_.prepare(work_of(op));
    const std::size_t bytes = plans_.workspace_bytes(work_of(op));
    std::unique_ptr<DeviceBuffer>& workspace = streams_.at(op.stream).workspace;
    if (bytes > 0 && !workspace) workspace = std::make_unique<DeviceBuffer>(CublasLt::kMostWorkspace);
  }
}

void CudaBackend::prepare(const Trace& schedule, bool checked) {
  require_file(schedule);
  try {
    synchronize_device();
  } catch (const std::exception&) {
    if (!checked) throw;  // else it was said by who failed, and this begins anew
  }
  checked_ = checked;
  streams_.prepare(schedule, checked);  // timed passes keep the streams of the checked one
  plan_kernels(schedule);
  clock_.prepare(schedule, streams_.engines());
  if (!checked) return;
  content_.reset();
  host_content_.reset();
}

void CudaBackend::start_clock() {
  use_device();
  clock_.start();
}

Buffer CudaBackend::allocate_host(Bytes bytes, bool pinned) {
  use_device();
  return host_memory_.allocate(bytes, pinned);
}

Buffer CudaBackend::allocate_file(Bytes bytes) {
  if (settings_.scratch.empty())
    throw UsageError(
        "this schedule keeps storages in the tier \"nvme\", which the back end \"cuda\" has as a file: give a folder "
        "for it (--scratch).");
  return {PlaceClass::file, nullptr, file_.allocate(bytes), bytes};
}

void CudaBackend::fill(const Buffer& buffer, std::uint64_t tag) {
  if (in_host_memory(buffer)) return fill_pattern(buffer.data, buffer.bytes, tag);
  if (on_device(buffer)) {
    use_device();
    launch_fill(buffer.data, static_cast<std::size_t>(buffer.bytes), tag, service_.get());
    return service_.synchronize();
  }
  file_.fill(buffer.offset, buffer.bytes, tag);
}

void CudaBackend::kernel(OpId id, std::uint16_t stream, const KernelWork& work, std::span<const Operand> operands) {
  const cudaStream_t on = current().device_stream(id, stream);
  const std::unique_ptr<DeviceBuffer>& workspace = streams_.at(stream).workspace;
  if (checked_) content_.expect_all(id, operands, on);
  clock_.begin(id, on);
  plans_.run(work, operands, on, workspace ? workspace->data() : nullptr);
  clock_.end(id, on);
  if (checked_) content_.fill_all(operands, on);
}

void CudaBackend::collective(OpId id, std::uint16_t stream, const CollectiveWork& work,
                             std::span<const Operand> operands) {
  const cudaStream_t on = current().device_stream(id, stream);
  if (checked_) content_.expect_all(id, operands, on);
  clock_.begin(id, on);
  launch_stand_in(work, multiprocessors_, !checked_, on);
  clock_.end(id, on);
  if (checked_) content_.fill_all(operands, on);
}

void CudaBackend::copy(OpId id, std::uint16_t stream, const Operand& from, const Operand& to, Bytes bytes) {
  const cudaStream_t on = current().device_stream(id, stream);
  if (in_file(from.buffer) || in_file(to.buffer))
    throw UsageError(op_text(id) + " is a copy to or from a file; only storage ops reach files.");
  require_room(id, from, to, bytes);
  if (checked_) content_.expect(id, 0, from.buffer, bytes, from.expected, on);
  clock_.begin(id, on);
  check(cudaMemcpyAsync(to.buffer.data, from.buffer.data, static_cast<std::size_t>(bytes),
                        kind_of(from.buffer, to.buffer), on),
        "cudaMemcpyAsync");
  clock_.end(id, on);
  // Never filled: what did not arrive must stay missing. Host memory is looked at by who reads it.
  if (checked_) content_.expect(id, 1, to.buffer, bytes, from.expected, on);
}

void CudaBackend::storage_io(OpId id, std::uint16_t stream, const Operand& from, const Operand& to, Bytes bytes) {
  if (in_file(from.buffer) == in_file(to.buffer) || on_device(from.buffer) || on_device(to.buffer))
    throw UsageError(op_text(id) + " is a storage op; expected one between host memory and the file.");
  require_room(id, from, to, bytes);
  streams_.storage_queue(id, stream).submit([this, id, from, to, bytes] { move_file(id, from, to, bytes); });
}

// On the thread of a storage queue.
void CudaBackend::move_file(OpId id, const Operand& from, const Operand& to, Bytes bytes) {
  const bool reads = in_file(from.buffer);
  if (checked_ && !reads) host_content_.expect(id, "stores", from.buffer, bytes, from.expected);
  const EngineSpan span = reads ? file_.read(to.buffer.data, bytes, from.buffer.offset)
                                : file_.write(from.buffer.data, bytes, to.buffer.offset);
  clock_.note(id, span.start, span.end);
  if (checked_ && reads) host_content_.expect(id, "has brought", to.buffer, bytes, from.expected);
}

void CudaBackend::memset(OpId id, std::uint16_t stream, const Operand& to, Bytes bytes) {
  const cudaStream_t on = current().device_stream(id, stream);
  require_room(id, to, to, bytes);
  clock_.begin(id, on);
  check(cudaMemsetAsync(to.buffer.data, 0, static_cast<std::size_t>(bytes), on), "cudaMemsetAsync");
  clock_.end(id, on);
  if (checked_) content_.fill_all({&to, 1}, on);
}

void CudaBackend::host_work(OpId id, Bytes dram_bytes, std::span<const Operand> operands) {
  std::vector<Operand> in_host;
  for (const Operand& operand : operands)
    if (in_host_memory(operand.buffer)) in_host.push_back(operand);
  if (checked_) host_content_.expect_all(id, in_host);
  workers_.update(dram_bytes, in_host);
  if (checked_) memwall::fill_all(in_host);
}

void CudaBackend::device_times(std::vector<OpTimes>& times) {
  use_device();
  clock_.read(times);
}

const IntegrityCount& CudaBackend::integrity() const {
  use_device();
  integrity_ = content_.count();
  const IntegrityCount& host = host_content_.count();
  integrity_.checks += host.checks;
  integrity_.bytes += host.bytes;
  integrity_.mismatches += host.mismatches;
  if (integrity_.first_mismatch.empty()) integrity_.first_mismatch = host.first_mismatch;
  return integrity_;
}

Duration CudaBackend::kernel_alone(const KernelWork& work) {
  use_device();
  const DeviceBuffer workspace(plans_.workspace_bytes(work));
  return from_seconds(alone_.median_seconds(
      plans_.launches(work), [&](cudaStream_t stream) { plans_.run(work, {}, stream, workspace.data()); }));
}

Duration CudaBackend::collective_alone(const CollectiveWork& work) {
  use_device();
  return from_seconds(
      alone_.median_seconds(1, [&](cudaStream_t stream) { launch_stand_in(work, multiprocessors_, true, stream); }));
}

Duration CudaBackend::host_work_alone(Bytes dram_bytes) {
  constexpr std::size_t kSamples = 7, kWarmUps = 2;
  std::vector<double> seconds;
  for (std::size_t i = 0; i < kWarmUps + kSamples; ++i) {
    const auto start = std::chrono::steady_clock::now();
    workers_.update(dram_bytes, {});
    if (i >= kWarmUps)
      seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return from_seconds(upper_median(std::move(seconds)));
}

void check_settings(const CudaBackendSettings& settings) {
  int devices = 0;
  check(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  if (settings.device < 0 || settings.device >= devices)
    throw UsageError("device " + std::to_string(settings.device) + " was asked for; expected 0 to " +
                     std::to_string(devices - 1) + ", as this computer has " + std::to_string(devices) + ".");
  if (!settings.scratch.empty() && !std::filesystem::is_directory(settings.scratch))
    throw UsageError("the folder \"" + settings.scratch.string() +
                     "\" for the file that is the NVMe tier does not exist.");
}

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(const CudaBackendSettings& settings) {
  if (const std::string reason = cuda_unavailable_reason(); !reason.empty()) throw UsageError(reason);
  check_settings(settings);
  check(cudaSetDevice(settings.device), "cudaSetDevice");
  return std::make_unique<CudaBackend>(settings);
}

}  // namespace memwall
