// One device of a memory snapshot: what its caching allocator was asked for and did, and its segments at the end.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "sim/machine/tier_copies.h"
#include "sim/memory/pytorch_allocator.h"
#include "traces/run/export/memory_changes.h"
#include "traces/run/export/pickle_text.h"
#include "traces/run/export/snapshot_frames.h"
#include "traces/run/run.h"

namespace memwall {

// Where a snapshot's entries go.
struct SnapshotText {
  explicit SnapshotText(const Run& run) : frames(run, pickle) {}
  PickleText pickle;
  SnapshotFrames frames;
};

class DeviceSnapshot : private AllocatorObserver {
 public:
  // `tier`: of class device. `first_address`: added to all addresses, so that devices have their own.
  DeviceSnapshot(const Run& run, std::uint16_t tier, int device, Address first_address,
                 const AllocatorSettings& settings, SnapshotText& text);

  // The entries of device_traces; `flush` is called between them. Called once.
  void write_entries(const std::function<void()>& flush);
  // The dicts of its segments, behind the entries.
  void write_segments();

  std::uint16_t tier() const { return tier_; }
  int device() const { return device_; }
  Address end_of_addresses() const { return end_of_addresses_; }
  // As export_snapshot returns it.
  const std::string& difference() const { return difference_; }

 private:
  void on_segment_alloc(Address address, Bytes bytes, std::uint16_t stream) override;
  void on_segment_free(Address address, Bytes bytes, std::uint16_t stream) override;
  void on_segment_map(Address address, Bytes bytes, std::uint16_t stream) override;
  void on_segment_unmap(Address address, Bytes bytes, std::uint16_t stream) override;
  void on_retry_step(RetryStep step, Bytes bytes) override;

  void number_streams();
  void apply(const MemoryChange& change);
  void allocate(const MemoryChange& change, Bytes bytes, std::uint16_t stream);
  void release(const MemoryChange& change);
  void tell_requested_frees(const MemoryChange& before);
  void compare(Time time);
  void begin_entry(const char* action, std::uint16_t stream);
  void end_entry(const std::string& remark);
  void add(const char* action, Address address, Bytes bytes, std::uint16_t stream, const std::string& remark = "");
  void write_segment(const SegmentState& segment, std::size_t first, std::size_t last);
  void write_block(const BlockState& block);

  const Run& run_;
  std::uint16_t tier_;
  int device_;
  Address first_address_, end_of_addresses_;
  Bytes untracked_, capacity_;
  PytorchAllocator allocator_;
  const TierCopies copies_;
  SnapshotText& text_;
  std::vector<MemoryChange> changes_;
  std::vector<std::size_t> late_;  // changes whose free was asked for before, in the order of that
  std::size_t next_late_ = 0, next_point_ = 0;
  std::vector<std::uint32_t> stream_numbers_;  // by stream of the trace
  std::unordered_map<StorageId, std::vector<Address>> addresses_;
  std::unordered_map<Address, MemoryChange> made_by_;
  MemoryChange current_;  // what the allocator is being asked for
  bool is_unlimited_ = false;
  std::string difference_;
};

}  // namespace memwall
