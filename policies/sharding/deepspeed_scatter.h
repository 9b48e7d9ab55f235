// Gradients of stage 3 on their way to the rank's partitions.
//
// A hook copies each gradient into a bucket buffer that lives throughout, and drops it; one larger than the buffer is
// left where it is, and without contiguous_gradients, and that buffer, all are. A full bucket is cut by rank into a
// second buffer (each gradient padded to N * ceil(elements / N)), divided, reduce-scattered, and the rank's part copied
// to, or added to, a gradient buffer that lives throughout; with offload_optimizer that is on the host, to which the
// part travels in 16 bit in every micro-batch, and in fp32 in the last. Before a fourth bucket is sent the host waits
// for the first. Buckets are sent in a stream of their own with overlap_comm. With offload_optimizer=nvme the fp32 part
// goes on to NVMe (deepspeed_gradient_swap.h).
//
// The copy into the bucket runs in that stream, too, and the gradient's memory comes back behind it (record_stream).
// Source: deepspeedai/DeepSpeed, deepspeed/runtime/zero/stage3.py (reduce_independent_p_g_buckets_and_remove_grads,
// __reduce_and_partition_ipg_grads, partition_grads) and deepspeed/runtime/comm/coalesced_collectives.py.
//
// ZeRO++'s quantized gradients: int4, an all-to-all within the node, sums, an all-to-all between nodes; on one node, of
// vectors, and of what does not divide by 2 N, a reduce-scatter as above.
#pragma once

#include <map>

#include "policies/sharding/deepspeed_gradient_swap.h"
#include "policies/sharding/deepspeed_program.h"
#include "policies/sharding/deepspeed_settings.h"
#include "policies/sharding/deepspeed_super_offload.h"
#include "policies/sharding/zero_analysis.h"

namespace memwall {

// One that is not swapped: fp32, on the device until its sub-group steps.
struct UnswappedGradient {
  StorageId parameter = kNoStorage;  // kNoStorage: of none
  StorageId wide = kNoStorage;
  Bytes bytes = 0;
};

struct ScatteredGradients {
  StorageId buffer = kNoStorage;          // 16 bit, of the rank's partitions: on the device, or the host's accumulator
  StorageId wide = kNoStorage;            // fp32, on the host, of sub-groups that step there and are not on NVMe
  StorageId wide_on_device = kNoStorage;  // fp32, of sub-groups that step on the GPU while others do on the host
  std::uint64_t buckets = 0;
  Bytes buffer_bytes = 0;                             // of the bucket buffer and of the largest cut bucket
  std::vector<std::pair<OpId, std::uint16_t>> steps;  // last op of backward before each update, and the compute stream
  std::vector<std::vector<UnswappedGradient>> unswapped;  // by step
};

// `on_host`: gradients whose sub-group steps on the host, by parameter; the rest step on the GPU. `own`: elements of
// all partitions of the rank.
struct PartitionPlace {
  std::map<StorageId, bool> on_host;  // by parameter
  std::int64_t own = 0, own_on_host = 0;
  GradientSwap* swap = nullptr;   // with offload_optimizer=nvme
  SuperOffload* super = nullptr;  // of stage 3
};

ScatteredGradients scatter_gradients(DeepSpeedProgram& program, const Dataflow& flow, const ZeroAnalysis& analysis,
                                     const PartitionPlace& place, const DeepSpeedSettings& settings,
                                     std::uint32_t ranks_per_node);

}  // namespace memwall
