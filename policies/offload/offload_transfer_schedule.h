// The transfer schedule of a storage between device memory and the tier it is offloaded to: during which of its uses it
// is on the device, and the memory plan that this makes.
//
// Leaving follows torchtune's OffloadActivations (torchtune/training/_activation_offloading.py): after the last use, or
// when autograd saves it where the trace says when, a copy starts, and the device memory is given up once so many
// (`buffers`) later storages have left too, and the last use is over. Coming back follows TransformerEngine
// (transformer_engine/pytorch/cpu_offload.py): `prefetch` consuming ops ahead, or nodes of autograd's graph where these
// are known. How copies are carried out is policies/plan/plan_writer.h.
#pragma once

#include <string>
#include <vector>

#include "policies/offload/offload_settings.h"
#include "policies/trace/dataflow.h"
#include "policies/trace/saved_storages.h"
#include "policies/trace/trace_edit.h"
#include "sim/machine/pricer.h"

namespace memwall {

// Consecutive touches of a storage during which it stays on the device. Indices into
// Dataflow::touches, both inclusive.
struct ResidencyInterval {
  std::size_t first = 0, last = 0;
  bool fresh = false;  // begins with a write of the whole content: nothing to fetch
};

enum class Home : std::uint8_t {
  device,  // made on the device, leaves between intervals, ends there
  far,     // lives far; copied to the device for each interval
  gone     // made on the device; somebody else has taken the content away after the last interval
};

// The new content of a far home is in the stage before it: since op `op`, in `host`.
struct Refresh {
  OpId op = kNoOp;
  StorageId host = kNoStorage;
};

struct TransferSchedule {
  StorageId storage = kNoStorage;
  Home home = Home::device;
  std::vector<ResidencyInterval> intervals;  // at least one; ascending
  std::vector<Refresh> refreshes;            // home far, copies staged: written on from pinned host memory
  std::optional<SavePoint> saved{};          // where its copy leaves before the end of the first interval
};

struct ScheduledTransfers {
  std::size_t storages = 0;  // that travel
  Bytes bytes = 0;           // of these storages
  Bytes bytes_out = 0, bytes_in = 0;
  std::size_t kept = 0;  // the last of a run, still in flight when it ends: not worth a copy
  Bytes kept_bytes = 0;
  MemoryPlan plan;              // that was written
  std::size_t sent_before = 0;  // of these storages: whose content somebody else has taken away (Home::gone)
  // `steps`: whose figures these are, together. REQUIRES: `what` is a plural with an s.
  std::string sentence(const std::string& what, const std::string& to, std::size_t steps) const;
};

// What insert_transfers() writes. REQUIRES: as there.
MemoryPlan transfer_plan(const TraceEdit& edit, const OffloadSettings& settings, const Dataflow& flow,
                         const std::vector<TransferSchedule>& schedules, bool keep_last,
                         const SavedStorages* saved = nullptr);

// Adds to `edit` what the schedules need. With `keep_last`, the last `settings.buffers` departures of
// a run stay on the device. With `saved`, what comes back is asked for by its nodes. REQUIRES: the schedules' storages
// are distinct, `flow` is of edit.base().
ScheduledTransfers insert_transfers(TraceEdit& edit, const Pricer& pricer, const OffloadSettings& settings,
                                    const Dataflow& flow, const std::vector<TransferSchedule>& schedules,
                                    bool keep_last, const SavedStorages* saved = nullptr);

}  // namespace memwall
