// A back end for tests of the executor: real bytes, a clock that only counts, and streams that run as late as they
// are allowed to, so that a forgotten wait shows in every run.
//
// Compute streams run at once, having first run what they wait for; others only when somebody waits for them.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "validate/replay/backend.h"
#include "validate/replay/host_content.h"

namespace memwall {

struct ScriptedSettings {
  Bytes device_capacity = MiB(256);
  Bytes host_capacity = MiB(16);
  Bytes file_capacity = MiB(16);
  OpId fails_at = kNoOp;       // this kernel throws when it is submitted
  OpId loses_word_at = kNoOp;  // this copy leaves out its last eight bytes
};

class ScriptedBackend final : public Backend, private SegmentSource {
 public:
  explicit ScriptedBackend(const ScriptedSettings& settings = {});

  // "prepare checked", "kernel 5", "copy 7", "synchronize stream 0", ... of the latest pass, in order.
  std::vector<std::string> calls() const;
  std::size_t passes = 0;            // prepared
  std::size_t segments = 0;          // obtained in all
  std::size_t live_segments = 0;     // and not given back
  std::size_t live_host = 0;         // blocks of host memory and of the file
  std::size_t kernels_alone = 0;     // asked for
  std::size_t host_allocations = 0;  // of memory and file, in all

  std::string name() const override { return "scripted"; }
  Environment environment() const override { return {{"gpu.name", "none"}}; }
  Bytes device_capacity() const override { return settings_.device_capacity; }
  void prepare(const Trace& schedule, bool checked) override;
  void start_clock() override;
  Time now() const override;
  SegmentSource& device_memory() override { return *this; }
  Buffer allocate_host(Bytes bytes, bool pinned) override;
  void free_host(const Buffer& buffer) override;
  Buffer allocate_file(Bytes bytes) override;
  void free_file(const Buffer& buffer) override;
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
  Duration collective_alone(const CollectiveWork& work) override { return work.duration; }

 private:
  struct StreamQueue {
    std::deque<std::function<void()>> waiting;
    std::size_t submitted = 0, done = 0;
    bool eager = true;
  };
  struct Position {
    std::uint16_t stream = 0;
    std::size_t count = 0;  // of what must be done there
  };

  std::optional<Address> obtain(Bytes bytes) override;
  void give_back(Address address, Bytes bytes) override;
  void note(const std::string& call);
  void submit(std::uint16_t stream, std::function<void()> work);
  void run_until(std::uint16_t stream, std::size_t count);
  void work(OpId id, std::uint16_t stream, std::function<void()> what);
  void transfer(OpId id, std::uint16_t stream, const Operand& from, const Operand& to, Bytes bytes);
  char* bytes_of(const Buffer& buffer);

  const ScriptedSettings settings_;
  mutable std::recursive_mutex mutex_;
  std::vector<std::string> calls_;
  mutable std::int64_t ticks_ = 0;
  bool checked_ = false;
  ContentCheck check_;
  std::vector<StreamQueue> streams_;
  std::map<std::uint32_t, Position> events_;
  std::vector<OpTimes> times_;
  std::vector<char> file_;
  Bytes device_used_ = 0, host_used_ = 0, file_used_ = 0;
};

}  // namespace memwall
