// Brings the parameters of stage 3 together, as DeepSpeed's coordinator and its all-gathers do.
//
// Parameters that are fetched at once share a flat buffer of N times their partitions: the rank's own go in first, then
// the all-gather runs; when the module needs them each is copied out of it, so that both live until then (twice the
// bytes). A parameter alone is gathered in place. Before it waits for a parameter the host waits for the third last one
// that it waited for: the only thing that holds it back. Compute then waits for the all-gather stream.
//
// Partitions on the host come to the GPU one by one, and the host waits for each; in a stream of their own, so that it
// waits for nothing else.
//
// Partitions on NVMe are read into pinned buffers first, one each, which they hold until their parameter is released:
// ahead if the plan says so, else while the host waits (deepspeed/runtime/swap_tensor/partitioned_param_swapper.py).
// With GPUDirect Storage (aio_use_gds) these buffers are on the GPU and gathers read them there: no copy, no bytes in
// host memory. DeepSpeed gives such a buffer to the next read when the host releases its parameter; here that read
// waits until the gather has read the buffer, without which it could overwrite what is still needed.
//
// With use_all_reduce_for_fetch_params parameters that are fetched at once are views of one buffer: it is zeroed, the
// rank's own partitions go in, it is all-reduced. Nothing is copied out of it, and it lives until the last of them is
// released (AllReduceCoalescedHandle). A fine-grained module (deepspeed_leaf_modules.h) is not counted among those that
// the host waits for. DeepSpeed gives its memory back without record_stream (free_data=False in
// partitioned_param_coordinator.py), so that the next gather may write where compute still reads; here it comes back as
// that of others.
//
// The memory of a released parameter comes back once the compute stream is done with it (record_stream). The whole
// parameters are allocated with the flat buffer, not only when they are waited for, so that policies which re-run ops
// find who brings them together. Source: deepspeedai/DeepSpeed, deepspeed/runtime/zero/partition_parameters.py
// (all_gather_coalesced, AllGatherCoalescedHandle) and partitioned_param_coordinator.py.
//
// ZeRO++: with quantized weights partitions travel in int8 with an fp32 scale per group of 8000 elements; with a
// secondary partition backward gathers from the node's ranks alone, what forward has cut for it after each update.
#pragma once

#include "policies/sharding/deepspeed_fetch_plan.h"
#include "policies/sharding/deepspeed_program.h"
#include "policies/sharding/deepspeed_settings.h"
#include "policies/sharding/zero_analysis.h"

namespace memwall {

struct DeepSpeedFetches {
  std::map<StorageId, StorageId> persistent;  // by parameter: where it stands whole
  Bytes largest_gather = 0;                   // buffers and parameters of one gather
  Bytes secondary_bytes = 0;                  // at rest
};

// The parameters of the edit become the rank's partitions, each ceil(elements / N). What uses parameters outside of the
// optimizer works on whole ones.
DeepSpeedFetches fetch_as_deepspeed(DeepSpeedProgram& program, const ZeroAnalysis& analysis, const FetchPlan& plan,
                                    const DeepSpeedSettings& settings);

}  // namespace memwall
