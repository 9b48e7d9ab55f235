// Copies storages between device memory and the tier they are offloaded to, through staging buffers where it takes
// them.
//
// To the host or a peer it is one copy; to NVMe, and wherever the style stages copies on their way, a copy into
// pinned host memory and a write, and the reverse on the way back. Pinned copies run on streams of their own, one per
// direction, and meet the compute stream at events; pageable ones, and with stream=compute pinned ones too, run on the
// compute stream and block the host, as PyTorch's save_on_cpu does. The staged way reuses a ring of host buffers,
// exactly sized and page-locked for good, as DeepSpeed's swapper does (deepspeed/runtime/swap_tensor/).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "policies/trace/trace_edit.h"
#include "sim/machine/pricer.h"
#include "sim/policy/memory_plan.h"

namespace memwall {

class StagingCopies {
 public:
  // `largest`: the biggest storage that will travel, in bytes: the size of a staging buffer.
  // `edit` and `pricer` must outlive it.
  StagingCopies(TraceEdit& edit, const Pricer& pricer, const TransferStyle& style, Bytes largest);

  // A new storage like `model`, at the far tier.
  StorageId new_far_storage(StorageId model, bool preexisting);
  // Moves the storage itself to the far tier: from the start of the trace it lives there.
  void move_to_far_tier(StorageId storage);

  // Copies `device` to `far` after the work so far of `streams`, its users. Returns the event after
  // which the device memory may be given away.
  std::uint32_t send(InsertionPoint point, StorageId device, StorageId far, const std::vector<std::uint16_t>& streams);
  // Copies `far` into `device`, just allocated, after the work so far of the stream of its pool.
  // Returns the event at which it has arrived.
  static constexpr std::uint32_t kNone = 0xffffffff;
  std::uint32_t fetch(InsertionPoint point, StorageId far, StorageId device);
  // `stage` (pinned memory of the tier in between) becomes the content of `far`, after the work so far of the host.
  void write_from_staging(InsertionPoint point, StorageId stage, StorageId far);

  // One transfer on `stream`, nothing else: the smaller of the two sizes.
  void add_copy(InsertionPoint point, StorageId from, StorageId to, std::uint16_t stream);
  // A storage that lives throughout, page-locked where the tier is memory of the host.
  StorageId buffer(const std::string& tier, Bytes bytes, StorageKind kind, std::string_view label);

  // The stream that carries copies away from (towards) a device storage.
  std::uint16_t out_stream(StorageId device);
  std::uint16_t in_stream(StorageId device);
  // The stream after whose work what was sent from a device storage lies at the far tier.
  std::uint16_t arrival_stream(StorageId device);

  // The event behind which a far storage has the content last sent to it. REQUIRES: something was sent.
  std::uint32_t arrival(StorageId far) const { return arrived_.at(far); }

  Bytes bytes_out() const { return bytes_out_; }
  Bytes bytes_in() const { return bytes_in_; }

 private:
  struct Slot {
    StorageId storage = kNoStorage;
    std::uint32_t consumed = kNone;  // event: its content has been taken on
  };

  // The device whose memory the storage is (or mirrors).
  std::uint16_t device_of(StorageId storage);
  Slot& next_slot(std::vector<Slot>& ring, std::size_t& turn, const char* label);

  TraceEdit& edit_;
  const Pricer& pricer_;
  const TransferStyle style_;
  Bytes largest_;
  Bytes bytes_out_ = 0, bytes_in_ = 0;
  std::vector<Slot> write_ring_, read_ring_;
  std::size_t write_turn_ = 0, read_turn_ = 0;
  std::map<StorageId, std::uint32_t> arrived_;  // far storage -> event of its newest content
};

// Device memory that the trace says was reserved at the start shrinks by what now starts elsewhere.
void give_back_reserved(TraceEdit& edit);

}  // namespace memwall
