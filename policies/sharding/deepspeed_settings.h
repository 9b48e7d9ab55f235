// What the user asked of `deepspeed`: the keys of DeepSpeed's configuration by their names and with their defaults,
// and what DeepSpeed itself refuses.
//
// Sizes are in elements wherever DeepSpeed counts elements. Source: deepspeedai/DeepSpeed, deepspeed/runtime/zero/
// config.py and offload_config.py, deepspeed/runtime/swap_tensor/constants.py.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/machine/machine.h"
#include "sim/policy/registry.h"

namespace memwall {

enum class OffloadDevice : std::uint8_t { none, cpu, nvme };

// Asynchronous I/O of the NVMe tier.
struct AsynchronousIo {
  Bytes block_size = MiB(1);
  std::int64_t queue_depth = 8;
  std::int64_t intra_op_parallelism = 1;  // threads that a request is divided among
  bool single_submit = false;             // one call per block instead of one per batch
  bool overlap_events = true;             // the queue is kept full; false: it is filled, and emptied, again and again
  bool use_gds = false;                   // GPUDirect Storage: parameters are read into buffers on the GPU
};

// Updates of selected columns on the GPU (deepspeed_zenflow.h).
struct ZenFlowSettings {
  bool on = false;
  double topk_ratio = 0.1;           // of a parameter's columns
  std::int64_t update_interval = 1;  // micro-batches, as below
  std::int64_t select_interval = 0;  // 0 = not within the steps that are simulated
  bool overlap_step = false;         // the host's update runs beside the next step
  bool offload = false;              // the selected columns' moments live on the host
};

struct DeepSpeedSettings {
  int stage = 0;
  std::uint32_t ranks = 2;
  bool overlap_comm = false;
  bool contiguous_gradients = true;  // copied into buckets
  bool buckets_before_backward = false;
  bool reduce_scatter = true;
  bool multi_rank_bucket_allreduce = true;
  bool round_robin_gradients = false;
  std::uint32_t partition_ranks = 2;  // that share optimizer states, neighbours: all, but in stage 1
  bool broadcasts_partitions = false;
  std::int64_t reduce_bucket_size = 500'000'000;  // elements, as all sizes below
  // Stage 3.
  std::int64_t sub_group_size = 1'000'000'000;
  std::int64_t prefetch_bucket_size = 50'000'000;
  std::int64_t param_persistence_threshold = 100'000;
  std::int64_t model_persistence_threshold = 0;
  std::int64_t max_live_parameters = 1'000'000'000;
  std::int64_t max_reuse_distance = 1'000'000'000;
  std::int64_t module_granularity_threshold = 0;
  bool use_all_reduce_for_fetch_params = false;
  bool allgather_sequential = false;
  bool one_queue = false;                // CUDA_DEVICE_MAX_CONNECTIONS=1
  std::uint32_t hpz_partition_size = 1;  // ranks that share a secondary copy; 1 = there is none
  bool quantized_weights = false, quantized_gradients = false;
  // Offload.
  OffloadDevice offload_optimizer = OffloadDevice::none, offload_param = OffloadDevice::none;
  double ratio = 1;  // of the sub-groups that step on the CPU
  bool delayed_parameter_update = false;
  ZenFlowSettings zenflow;
  bool super_offload = false;      // deepspeed_super_offload.h
  bool gradient_clipping = false;  // what keeps super_offload from updating before the norm is known
  bool pipeline_read = false, pipeline_write = false;
  std::int64_t optimizer_buffer_count = 4, param_buffer_count = 5;
  bool grad_partitions_flat_buffer = true;  // false: as in ZeRO-Infinity's paper
  std::int64_t buffer_size = 100'000'000;   // of one buffer for swapped parameters
  std::int64_t max_in_cpu = 1'000'000'000;  // of parameters that stay on the host where offload_param=nvme
  AsynchronousIo aio;
  Duration hook{};  // what one hook on a module or a parameter takes on the host

  bool offloads_optimizer() const { return offload_optimizer != OffloadDevice::none; }
  // Does the host update with the last step's gradients while this step's arrive?
  bool updates_beside() const { return delayed_parameter_update || (zenflow.on && zenflow.overlap_step); }
  bool reads_into_gpu() const { return aio.use_gds && offload_param == OffloadDevice::nvme; }
  // With GPUDirect Storage cuFile keeps its own queue; what is in host memory goes through one thread. Source:
  // deepspeedai/DeepSpeed, csrc/gds/py_lib/deepspeed_py_gds_handle.cpp (_create_io_op_desc and the constructor).
  AsynchronousIo parameter_reads() const;
  AsynchronousIo parameter_writes() const;
};

std::vector<ParameterInfo> deepspeed_parameters();

// Throws UsageError for what DeepSpeed refuses, with its reason, and for what is not implemented.
DeepSpeedSettings deepspeed_settings(const PolicyArguments& arguments);

// Throws UsageError if no fabric of the machine reaches so many ranks, or it lacks a tier that is offloaded to.
void require_machine(const DeepSpeedSettings& settings, const Machine& machine);

}  // namespace memwall
