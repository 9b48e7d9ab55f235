#include "policies/sharding/fsdp_offload.h"

#include <vector>

#include "policies/trace/described.h"
#include "sim/error.h"

namespace memwall {
namespace {

// Its bytes are those of the shards that it reads and writes.
void run_on_cpu(TraceEdit& edit, OpId id, const Pricer& pricer) {
  const Trace& t = edit.base();
  const Op& old = t.ops[id];
  if (old.graph_member)
    throw UsageError("Policy 'fsdp': offload=cpu: " + described_op(t, id) + " of trace '" + t.name +
                     "' updates parameters in a CUDA graph; expected an optimizer step of its own kernels.");
  Op op;
  op.kind = OpKind::host_work;
  op.phase = old.phase;
  op.thread = old.thread;
  op.host_gap = old.host_gap;
  op.name = old.name;
  op.operator_name = old.operator_name;
  op.module = old.module;
  op.operator_class = old.operator_class;
  op.data_type = old.data_type;
  op.origin = Origin::modelled;
  op.added = true;
  for (const Use& use : t.uses_of(old)) op.bytes += edit.tables().storages[use.storage].bytes;
  op.duration = pricer.host_memory_work(op.bytes);
  edit.replace(id, op);
}

}  // namespace

void offload_to_cpu(TraceEdit& edit, const ZeroAnalysis& analysis, const FsdpPrecision& precision, bool pinned,
                    const Pricer& pricer) {
  const std::uint8_t host = edit.tables().place("host");
  const auto move = [&](StorageId id, bool page_locked) {
    edit.tables().storages[id].place = host;
    edit.tables().storages[id].pinned = page_locked;
  };
  for (const StorageId id : analysis.states) move(id, false);
  for (const StorageId id : analysis.temporaries) move(id, false);
  for (const StorageId id : analysis.gradients) move(id, pinned);
  for (const StorageId id : analysis.parameters) move(precision.at_rest(id), pinned);
  for (const OpId id : analysis.updates)
    if (!precision.is_gone(id)) run_on_cpu(edit, id, pricer);
}

}  // namespace memwall
