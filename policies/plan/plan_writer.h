// Puts a memory plan into a trace: copies with their events and staging, early frees, new allocations, re-run ops.
//
// The only writer of such things. Leaving follows torchtune's OffloadActivations
// (torchtune/training/_activation_offloading.py): a copy starts on a side stream behind the work of the storage's
// users, and where its memory is given up the stream of its pool waits for the copy's event. Coming back follows
// TransformerEngine (transformer_engine/pytorch/cpu_offload.py): memory comes from the compute stream's pool, and the
// copy waits for the compute stream up to there, so that reused memory is never overwritten too early. A re-run repeats
// the host program of its ops on the thread that stands there: kernels, allocs, frees and host work with their gaps and
// costs, as torch.utils.checkpoint does. A re-run kernel keeps duration and origin, has Phase::recompute and names its
// original in Op::source. It does not have Op::added: it stands in its original's stream, where nothing runs beside it
// that did not before.
#pragma once

#include <utility>
#include <vector>

#include "policies/trace/dataflow.h"
#include "policies/trace/trace_edit.h"
#include "sim/machine/pricer.h"
#include "sim/policy/memory_plan.h"

namespace memwall {

struct WrittenPlan {
  Bytes bytes_out = 0, bytes_in = 0;  // of device memory
  // Storages of the new trace that stand for one of the base from a fetch or a re-run on, each with that one.
  std::vector<std::pair<StorageId, StorageId>> stand_ins{};
};

// Adds to `edit` what the plan needs. REQUIRES: the plan can be carried out (check_plan); `flow` is of edit.base().
WrittenPlan write_plan(const MemoryPlan& plan, const Dataflow& flow, const Pricer& pricer, TraceEdit& edit);

}  // namespace memwall
