// One allocator, driven by the calls of a recording.
//
// As recorded: the file gives the calls, the addresses of new segments and the releases; where the replay's memory is
// refused is concluded from them (see `Release`). Otherwise: the file gives the calls and the releases that were calls
// of the program, and memory is refused where the capacity ends.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/workload/memory/contradictions.h"
#include "models/workload/memory/recorded_segments.h"
#include "models/workload/memory/recording_replay.h"
#include "models/workload/memory/reverse_replay.h"
#include "sim/memory/address_table.h"

namespace memwall {

class RecordingPlayer final : private AllocatorObserver {
 public:
  static constexpr Bytes kUnlimited = Bytes{1} << 60;
  static constexpr std::size_t kLongestRetrySequence =
      1000;  // steps that are listed, and the blocks looked at for them
  static constexpr std::size_t kMostRetryWork = 5'000'000;

  // Nothing is owned but the allocator.
  RecordingPlayer(const DeviceRecording& device, const StartState& start, const AllocatorSettings& recorded);
  RecordingPlayer(const DeviceRecording& device, const StartState& start, const AllocatorSettings& recorded,
                  const ReplayVariant& variant, std::size_t longest_retry_sequence);
  RecordingPlayer(const RecordingPlayer&) = delete;
  RecordingPlayer& operator=(const RecordingPlayer&) = delete;

  // Events [0, end). Points are as large as the recording itself: whoever wants the last state alone goes without.
  // REQUIRES: called once, with end <= the number of events.
  void play(std::size_t end, bool keep_points = true);
  // Points, retry_sequence, check (without the final state), missing, statistics and notes of what was played; `points`
  // and `retry_sequence` are moved out.
  void report(RecordingReplay& replay);

  MemoryTotals totals() const;  // now
  const MemoryTotals& start_totals() const { return start_totals_; }
  std::vector<SegmentState> segments() const;  // now; none where the allocator is not PyTorch's

 private:
  using Action = MemoryEvent::Action;
  struct Live {
    Address recorded = 0, address = 0;  // in the file; in the replay
    Bytes size = 0, requested = 0;
    bool pending = false;    // its free was requested
    bool completed = false;  // and a synchronization was faster than the recorded completion
  };
  // A run of segment_free and segment_unmap. PyTorch has no action for empty_cache, so the run itself is the sign of
  // one: a command. Where its stack is that of the allocation that follows directly, and was seen to obtain memory, the
  // allocation released it; where an oom follows directly, the failing request did.
  enum class Release : std::uint8_t { command, retry, out_of_memory };

  void make_pytorch(const StartState& start, Bytes device_total);
  void restore(const StartState& start);
  void allocate_anew(const StartState& start);
  void use_private_pools(const StartState& start);

  void handle(std::uint32_t i);
  void on_alloc(std::uint32_t i);
  void on_free_requested(std::uint32_t i);
  void on_free_completed(std::uint32_t i);
  void on_release(std::uint32_t i);
  void on_oom(std::uint32_t i);
  Release kind_of_release(std::size_t begin, std::size_t end);
  Release kind_of_call(std::size_t begin, std::size_t end, std::size_t released) const;
  bool completed_by_request_after(std::uint32_t i);
  bool obtains(std::size_t begin, std::size_t end) const;
  void release_cached(std::size_t begin, std::size_t end);
  void fail_as_recorded(std::uint32_t i);
  void drop_attempt();
  std::size_t segment_events_before(std::uint32_t i) const;
  void compare(std::size_t begin, std::size_t end);
  void add_point();

  // recording_player_requests.cpp
  std::optional<Live> request(Bytes bytes, std::uint16_t stream, std::uint32_t private_pool);
  std::optional<Live> request_as_recorded(std::uint32_t i, std::uint32_t private_pool);
  std::optional<Address> ask(Bytes bytes, std::uint16_t stream, std::uint32_t private_pool);
  void refuse_as_recorded(std::size_t begin, std::size_t end);
  void begin_request(Bytes bytes, std::uint16_t stream, std::uint32_t private_pool);
  void lift_limits();
  void request_free(std::uint32_t id);
  void complete_free(std::uint32_t id);
  void leave_to_synchronization(std::uint32_t id);
  void complete_pending_frees();
  void add_live(const Live& block);
  std::uint32_t private_pool_at(Address recorded) const;
  AllocatorStatistics statistics() const;

  void on_segment_alloc(Address address, Bytes bytes, std::uint16_t stream) override;
  void on_segment_free(Address address, Bytes bytes, std::uint16_t stream) override;
  void on_segment_map(Address address, Bytes bytes, std::uint16_t stream) override;
  void on_segment_unmap(Address address, Bytes bytes, std::uint16_t stream) override;
  void on_retry_step(RetryStep step, Bytes bytes) override;

  const DeviceRecording& device_;
  AllocatorSettings settings_;
  bool as_recorded_;
  Bytes capacity_;       // kUnlimited once it was lifted
  Bytes limit_;          // the least of capacity and the fraction of the device, as they were given
  bool lifted_ = false;  // a request found no memory
  std::size_t longest_retry_sequence_;

  RecordedSegments source_;
  std::unique_ptr<Allocator> allocator_;
  PytorchAllocator* pytorch_ = nullptr;  // the same, or null

  AddressTable by_recorded_;
  std::vector<Live> live_;
  std::vector<std::uint32_t> unused_;   // numbers of live_
  std::vector<std::uint32_t> pending_;  // numbers of live_; may be out of date
  Bytes active_ = 0, pending_bytes_ = 0, requested_ = 0;
  std::uint64_t blocks_ = 0;
  bool synchronized_ = false;             // by a step of the present request
  std::optional<Live> attempt_;           // the request of an oom event that found memory; freed at the next event
  ReservedRanges private_ranges_;         // segments of private pools, at the start and at the end
  std::vector<std::uint32_t> pool_uses_;  // of each private pool, how often it was begun

  std::uint32_t event_ = 0;  // the present one
  Bytes asked_ = 0;          // by the present request, and of which pool
  std::uint16_t asked_stream_ = 0;
  std::uint32_t asked_pool_ = 0;
  bool recorded_addresses_ = false;   // new segments lie where the recording had them
  Bytes peak_allocated_ = 0;          // for allocators that keep no statistics
  std::vector<MemoryEvent> made_;     // what the present call did to segments
  std::size_t consumed_ = 0;          // segment events before this one have been compared
  std::size_t releases_awaited_ = 0;  // by a request that the recording shows to have been refused; 0 = it was not
  Bytes room_after_release_ = 0;      // what it obtained then
  std::size_t completions_end_ = 0;   // of the run of free_completed that was looked at last
  bool completions_held_ = false;     // it is completed by the request after it
  std::size_t same_call_end_ = 0;     // runs of releases before this event are of the call that was looked at last
  Release same_call_kind_ = Release::command;
  std::size_t release_end_ = 0;         // of the run of releases that was handled last
  std::size_t frameless_releases_ = 0;  // commands that may have been retries: a segment was obtained right after
  std::size_t served_failures_ = 0;     // oom events whose request the cache serves here: of a private pool, say
  std::size_t unlisted_retries_ = 0, retry_work_ = 0;
  // A command releases everything at its first event; by these much more is still reserved after it and the next ones.
  std::vector<Bytes> still_reserved_;
  std::size_t still_reserved_from_ = 0;

  MemoryTotals start_totals_;
  std::vector<MemoryLevels> points_;
  std::vector<RecordedRetry> retry_sequence_;
  ReplayCheck check_;
  Bytes missing_ = 0;
  Contradictions wrong_;
  std::vector<std::string> notes_;
};

// Contiguous mapped ranges and their blocks, as a snapshot counts them.
void count_segments(const std::vector<SegmentState>& segments, MemoryTotals& totals);

}  // namespace memwall
