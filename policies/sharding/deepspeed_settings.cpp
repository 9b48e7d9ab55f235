#include "policies/sharding/deepspeed_settings.h"

#include <string>

#include "sim/error.h"

namespace memwall {
namespace {

constexpr ParameterRange kElements{1, 1e15};
constexpr ParameterRange kElementsOrNone{0, 1e15};

std::vector<ParameterInfo> gradient_parameters() {
  return {
      integer("reduce_bucket_size", 500'000'000, kElements, "elements",
              "of gradients that are reduced together; so large are the bucket buffers, however small the network"),
      flag("overlap_comm", Unset{"auto"},
           "1 = gradients are reduced in a stream of their own during backward; auto = 1 in stage 3, else 0"),
      flag("reduce_scatter", true,
           "stages 1 and 2: 0 = each bucket is all-reduced in place; stage 3: 0 = all-reduced and cut"),
      flag("use_multi_rank_bucket_allreduce", true,
           "stages 1 and 2: 1 = a bucket is flattened and all-reduced, 0 = reduced to the owner of each slice"),
      flag("contiguous_gradients", true,
           "gradients are copied into bucket buffers; 0 = they stay where autograd put them, stages 1 and 2 all-reduce "
           "them in any case; without effect there with offload_optimizer, which needs the buffers"),
      flag("buckets_before_backward", false,
           "stages 1 and 2: 1 = the bucket buffers are there before backward begins, as in DeepSpeed's versions that "
           "made them in backward() itself (2020 to 2025); 0 = from the first gradient on; no key of DeepSpeed's"),
      flag("round_robin_gradients", false, "stages 1 and 2: parameters are dealt out to the ranks in turn"),
      flag("allgather_partitions", true, "updated parameters are gathered; 0 is not implemented"),
      integer("partition_ranks", Unset{"ranks"}, {2, 1 << 20}, "ranks",
              "stage 1: neighbours that split the optimizer's states among them, so that each group of so many holds "
              "them all; no key of DeepSpeed's, but InternEvo's (zero1.size)"),
      flag("broadcast_partitions", false,
           "stage 1: 1 = each rank of a group broadcasts what it has updated, one after the other, as InternEvo's "
           "do, whose ranks own whole parameters; no key of DeepSpeed's"),
      integer("allgather_bucket_size", 500'000'000, kElements, "elements",
              "without effect: NCCL gathers a whole group of parameters at once")};
}

std::vector<ParameterInfo> stage3_parameters() {
  return {integer("sub_group_size", 1'000'000'000, kElements, "elements",
                  "stage 3: of a rank's partition that are updated at once"),
          integer("prefetch_bucket_size", 50'000'000, kElementsOrNone, "elements",
                  "stage 3: of parameters that are gathered ahead of their module"),
          integer("param_persistence_threshold", 100'000, kElementsOrNone, "elements",
                  "stage 3: parameters up to this size stay gathered"),
          integer("model_persistence_threshold", Unset{"unlimited"}, kElementsOrNone, "elements",
                  "stage 3: of a rank's partition, at most so much is of parameters that stay gathered"),
          integer("max_live_parameters", 1'000'000'000, kElementsOrNone, "elements",
                  "stage 3: of gathered parameters, beyond which none is gathered ahead"),
          integer("max_reuse_distance", 1'000'000'000, kElementsOrNone, "elements",
                  "stage 3: a parameter stays gathered if it is used again within so many elements of others"),
          integer("module_granularity_threshold", 0, kElementsOrNone, "elements",
                  "stage 3: modules with so few of parameters for each module in them are gathered as a whole"),
          flag("use_all_reduce_for_fetch_params", false,
               "stage 3: 1 = parameters that are gathered together are all-reduced from a buffer of zeros"),
          flag("one_queue", false,
               "stage 3: 1 = CUDA_DEVICE_MAX_CONNECTIONS=1: all streams share one hardware queue, so that a gather "
               "starts behind what was submitted before it; no key of DeepSpeed's"),
          flag("allgather_sequential", false, "stage 3: each parameter is gathered alone, without a flat buffer"),
          flag("memory_efficient_linear", true,
               "stage 3: without effect: what autograd keeps of a linear layer stays as the trace has it"),
          integer("zero_hpz_partition_size", 1, {1, 1 << 20}, "ranks",
                  "stage 3, ZeRO++: backward gathers from a second copy that so many ranks of a node share"),
          flag("zero_quantized_weights", false, "stage 3, ZeRO++: parameters are gathered in int8"),
          flag("zero_quantized_gradients", false, "stage 3, ZeRO++: gradients are reduced in int4, by all-to-alls")};
}

std::vector<ParameterInfo> offload_parameters_of_deepspeed() {
  return {
      choice("offload_optimizer", "none", {"none", "cpu", "nvme"},
             "where optimizer states live and the step runs (ZeRO-Offload); nvme: stage 3 alone"),
      choice("offload_param", "none", {"none", "cpu", "nvme"}, "stage 3: where partitions of parameters live"),
      number("ratio", 1, {0, 1}, "", "stage 3: of the sub-groups that step on the CPU (Twin-Flow); the last ones do"),
      flag("delayed_parameter_update", false,
           "the CPU's step runs beside the next step's forward and backward, as in ZeRO-Offload's paper; DeepSpeed "
           "itself does not"),
      flag("grad_partitions_flat_buffer", true,
           "stage 3 with offload_optimizer: 0 = the host keeps no copy of the rank's gradients in the parameters' type "
           "(2 bytes each), as in ZeRO-Infinity's paper; for one micro-batch a step. DeepSpeed itself always has it"),
      flag(
          "super_offload", false,
          "stage 3 with offload_optimizer=cpu: the CPU updates a sub-group once its gradients have arrived, beside the "
          "rest of backward"),
      flag("gradient_clipping", false,
           "super_offload: 1 = gradients are clipped, so that nothing is updated before the step; else without effect, "
           "since DeepSpeed computes the norm and scales gradients in any case"),
      number("cpuadam_cores_perc", 0.8, {0, 1}, "",
             "super_offload: without effect, the CPU's update is as fast as the machine says"),
      flag("zenflow", false,
           "stages 1 and 2 with offload_optimizer=cpu: the columns with the largest gradients are updated on the GPU "
           "after every micro-batch, everything on the CPU once in zenflow_update_interval"),
      number("zenflow_topk_ratio", 0.1, {1e-6, 0.999999}, "",
             "zenflow: share of a parameter's columns that is selected"),
      integer(
          "zenflow_update_interval", Unset{"auto"}, {1, 1 << 20}, "micro-batches",
          "zenflow: between updates on the CPU; the step has as many. auto, which depends on the gradients' values, "
          "is not implemented"),
      choice(
          "zenflow_select_strategy", "auto", {"auto", "step", "epoch"},
          "zenflow: are columns chosen anew after steps, or after epochs (auto: each), which are longer than what is "
          "simulated"),
      integer("zenflow_select_interval", Unset{"auto"}, {1, 1 << 30}, "micro-batches",
              "zenflow with zenflow_select_strategy=step: after so many columns are chosen anew"),
      flag("zenflow_overlap_step", false, "zenflow: the CPU's update runs beside the next step"),
      flag("zenflow_offload", false, "zenflow: moments of selected columns live on the host, and come for each bucket"),
      integer("zenflow_full_warm_up_rounds", 0, {0, 1 << 30}, "micro-batches",
              "zenflow: without effect, the steps that are simulated come after them"),
      number("zenflow_pt_reserved_cores_perc", 0.5, {0, 1}, "",
             "zenflow: without effect, the CPU's update is as fast as the machine says"),
      flag("pipeline_read", false, "offload_optimizer=nvme: the next sub-group is read while one is updated"),
      flag("pipeline_write", false, "offload_optimizer=nvme: a sub-group is written while the next is updated"),
      integer("offload_optimizer_buffer_count", 4, {1, 1024}, "buffers",
              "offload_optimizer=nvme: pinned buffers, each as large as the largest sub-group in fp32"),
      integer("offload_param_buffer_count", 5, {1, 1024}, "buffers", "offload_param=nvme: pinned buffers"),
      integer("buffer_size", 100'000'000, kElements, "elements", "offload_param=nvme: of one pinned buffer"),
      integer("max_in_cpu", 1'000'000'000, kElementsOrNone, "elements",
              "offload_param=nvme: of a rank's parameters that stay in host memory"),
      flag("pin_memory", true, "offload: host memory is page-locked; 0 is not implemented"),
      bytes("aio_block_size", "1MiB", 1, "nvme: of one request of asynchronous I/O"),
      integer("aio_queue_depth", 8, {1, 1 << 20}, "requests", "nvme: under way at once, by thread"),
      integer("aio_intra_op_parallelism", 1, {1, 1024}, "threads", "nvme: that a transfer is divided among"),
      flag("aio_single_submit", false, "nvme: 1 = a call for each request; its host time is not simulated"),
      flag("aio_overlap_events", true, "nvme: 0 = the queue is filled and emptied in turn"),
      flag("aio_use_gds", false,
           "offload_param=nvme: 1 = parameters are read into buffers on the GPU (GPUDirect Storage); what is written, "
           "and optimizer states, go through host memory in any case")};
}

OffloadDevice offload_device(const std::string& word) {
  return word == "cpu" ? OffloadDevice::cpu : word == "nvme" ? OffloadDevice::nvme : OffloadDevice::none;
}

[[noreturn]] void refuse_setting(const std::string& sentence) { throw UsageError("Policy 'deepspeed': " + sentence); }

void refuse_what_is_not_implemented(const PolicyArguments& a) {
  for (const char* key : {"allgather_partitions", "pin_memory"})
    if (!a.flag(key)) refuse_setting(std::string(key) + "=0 is not implemented; expected 1.");
}

ZenFlowSettings zenflow_settings(const PolicyArguments& a) {
  ZenFlowSettings z;
  z.on = a.flag("zenflow");
  if (!z.on) return z;
  z.topk_ratio = a.number("zenflow_topk_ratio");
  z.overlap_step = a.flag("zenflow_overlap_step");
  z.offload = a.flag("zenflow_offload");
  z.update_interval = a.integer_or("zenflow_update_interval", 0);
  const bool by_steps = a.choice("zenflow_select_strategy") == "step";
  const std::int64_t interval = a.integer_or("zenflow_select_interval", 0);
  if (z.update_interval == 0)
    refuse_setting(
        "zenflow_update_interval=auto depends on the values of gradients and is not implemented; expected a number of "
        "micro-batches.");
  if (by_steps && interval == 0)
    refuse_setting("zenflow_select_strategy=step needs zenflow_select_interval to be a number.");
  if (!by_steps && interval > 0 && a.choice("zenflow_select_strategy") == "auto")
    refuse_setting(
        "zenflow_select_strategy=auto chooses zenflow_select_interval itself; expected strategy step or epoch.");
  z.select_interval = by_steps ? interval : 0;
  return z;
}

void refuse_zenflow(const DeepSpeedSettings& s) {
  const ZenFlowSettings& z = s.zenflow;
  if (!z.on) return;
  if (s.stage == 3) refuse_setting("zenflow with stage=3 is not implemented; expected stage=1 or 2.");
  if (s.stage == 0 || s.offload_optimizer != OffloadDevice::cpu)
    refuse_setting("zenflow must be used with cpu offload; expected offload_optimizer=cpu.");
  if (z.offload && !s.overlap_comm) refuse_setting("zenflow_offload should be used with overlap_comm=1.");
  if (z.select_interval > 0 && z.select_interval < z.update_interval)
    refuse_setting("zenflow_select_interval must be greater than or equal to zenflow_update_interval.");
  if (z.select_interval % z.update_interval != 0)
    refuse_setting(
        "zenflow_select_interval that is no multiple of zenflow_update_interval (DeepSpeed then updates in between, "
        "too) "
        "is not implemented.");
  if (!s.reduce_scatter) refuse_setting("zenflow with reduce_scatter=0 fails in DeepSpeed; expected 1.");
  if (s.delayed_parameter_update)
    refuse_setting("zenflow with delayed_parameter_update has no meaning; zenflow_overlap_step=1 updates beside.");
  if (s.partition_ranks != s.ranks || s.broadcasts_partitions)
    refuse_setting("zenflow with partition_ranks or broadcast_partitions has no meaning.");
}

void refuse_as_deepspeed_does(const DeepSpeedSettings& s) {
  refuse_zenflow(s);
  if (s.super_offload && (s.stage < 3 || s.offload_optimizer != OffloadDevice::cpu))
    refuse_setting("super_offload needs stage=3 and offload_optimizer=cpu; DeepSpeed takes no notice of it elsewhere.");
  if (s.stage == 0 && s.offloads_optimizer())
    refuse_setting("offload_optimizer needs stage=1, 2 or 3: without ZeRO there is no partition to offload.");
  if (s.stage < 3 && s.offload_optimizer == OffloadDevice::nvme)
    refuse_setting("offload_optimizer=nvme needs stage=3; stages 1 and 2 offload to cpu.");
  if (s.stage < 3 && s.offload_param != OffloadDevice::none) refuse_setting("offload_param needs stage=3.");
  if (s.stage < 3 && s.ratio < 1) refuse_setting("Partial offloading (ratio < 1) is only supported for stage=3.");
  if (s.stage < 3 && (s.hpz_partition_size > 1 || s.quantized_weights || s.quantized_gradients))
    refuse_setting("ZeRO++ (zero_hpz_partition_size, zero_quantized_weights, zero_quantized_gradients) needs stage=3.");
  if (s.ratio < 1 && s.offload_param != OffloadDevice::none)
    refuse_setting("ratio < 1 with offload_param is not implemented.");
  if (s.ratio < 1 && s.offload_optimizer != OffloadDevice::cpu) refuse_setting("ratio needs offload_optimizer=cpu.");
  if (!s.grad_partitions_flat_buffer && (s.stage < 3 || !s.offloads_optimizer()))
    refuse_setting("grad_partitions_flat_buffer=0 needs stage=3 and offload_optimizer, as in ZeRO-Infinity's paper.");
  if (s.delayed_parameter_update && (s.offload_optimizer != OffloadDevice::cpu || s.stage == 3))
    refuse_setting("delayed_parameter_update needs offload_optimizer=cpu in stage 1 or 2, as in ZeRO-Offload's paper.");
  if (s.offload_param != OffloadDevice::none && s.offload_optimizer == OffloadDevice::none)
    refuse_setting(
        "parameter offload is only available with optimizer state offload; expected offload_optimizer=cpu or nvme.");
  if (s.stage != 1 && (s.partition_ranks != s.ranks || s.broadcasts_partitions))
    refuse_setting("partition_ranks and broadcast_partitions need stage=1.");
  if (s.ranks % s.partition_ranks != 0)
    refuse_setting("partition_ranks=" + std::to_string(s.partition_ranks) +
                   " does not divide ranks=" + std::to_string(s.ranks) + ".");
  if (s.partition_ranks != s.ranks && !s.multi_rank_bucket_allreduce)
    refuse_setting("partition_ranks with use_multi_rank_bucket_allreduce=0 is not implemented.");
  if (s.ranks % s.hpz_partition_size != 0)
    refuse_setting("zero_hpz_partition_size=" + std::to_string(s.hpz_partition_size) +
                   " does not divide ranks=" + std::to_string(s.ranks) + ".");
}

}  // namespace

std::vector<ParameterInfo> deepspeed_parameters() {
  std::vector<ParameterInfo> all = {
      integer("stage", kRequired, {0, 3}, "",
              "0 = plain data parallel, 1 = optimizer states, 2 = and gradients, 3 = and parameters are split over the "
              "ranks"),
      integer("ranks", kRequired, {1, 1 << 20}, "ranks",
              "data-parallel ranks; one still runs every gather and reduction")};
  for (auto part : {gradient_parameters(), stage3_parameters(), offload_parameters_of_deepspeed()})
    all.insert(all.end(), part.begin(), part.end());
  all.push_back(
      number("hook_us", 60, {0, 1e6}, "us",
             "host time of one hook on a module (stage 3) or a parameter: assumed, about that of one operator "
             "of PyTorch"));
  return all;
}

DeepSpeedSettings deepspeed_settings(const PolicyArguments& a) {
  refuse_what_is_not_implemented(a);
  DeepSpeedSettings s;
  s.stage = static_cast<int>(a.integer("stage"));
  s.ranks = static_cast<std::uint32_t>(a.integer("ranks"));
  s.overlap_comm = a.flag_or("overlap_comm", s.stage == 3);
  s.reduce_scatter = a.flag("reduce_scatter");
  s.multi_rank_bucket_allreduce = a.flag("use_multi_rank_bucket_allreduce");
  s.buckets_before_backward = a.flag("buckets_before_backward");
  s.round_robin_gradients = a.flag("round_robin_gradients");
  s.partition_ranks = static_cast<std::uint32_t>(a.integer_or("partition_ranks", s.ranks));
  s.broadcasts_partitions = a.flag("broadcast_partitions");
  s.reduce_bucket_size = a.integer("reduce_bucket_size");
  s.sub_group_size = a.integer("sub_group_size");
  s.prefetch_bucket_size = a.integer("prefetch_bucket_size");
  s.param_persistence_threshold = a.integer("param_persistence_threshold");
  s.model_persistence_threshold = a.integer_or("model_persistence_threshold", std::int64_t{1} << 60);
  s.max_live_parameters = a.integer("max_live_parameters");
  s.max_reuse_distance = a.integer("max_reuse_distance");
  s.module_granularity_threshold = a.integer("module_granularity_threshold");
  s.use_all_reduce_for_fetch_params = a.flag("use_all_reduce_for_fetch_params");
  s.allgather_sequential = a.flag("allgather_sequential");
  s.one_queue = a.flag("one_queue");
  s.hpz_partition_size = static_cast<std::uint32_t>(a.integer("zero_hpz_partition_size"));
  s.quantized_weights = a.flag("zero_quantized_weights");
  s.quantized_gradients = a.flag("zero_quantized_gradients");
  s.offload_optimizer = offload_device(a.choice("offload_optimizer"));
  s.offload_param = offload_device(a.choice("offload_param"));
  s.ratio = a.number("ratio");
  s.delayed_parameter_update = a.flag("delayed_parameter_update");
  s.zenflow = zenflow_settings(a);
  s.super_offload = a.flag("super_offload");
  s.gradient_clipping = a.flag("gradient_clipping");
  s.pipeline_read = a.flag("pipeline_read");
  s.pipeline_write = a.flag("pipeline_write");
  s.optimizer_buffer_count = a.integer("offload_optimizer_buffer_count");
  s.param_buffer_count = a.integer("offload_param_buffer_count");
  s.grad_partitions_flat_buffer = a.flag("grad_partitions_flat_buffer");
  s.buffer_size = a.integer("buffer_size");
  s.max_in_cpu = a.integer("max_in_cpu");
  s.aio = {a.bytes("aio_block_size"),   a.integer("aio_queue_depth"), a.integer("aio_intra_op_parallelism"),
           a.flag("aio_single_submit"), a.flag("aio_overlap_events"), a.flag("aio_use_gds")};
  s.contiguous_gradients = a.flag("contiguous_gradients") || (s.stage < 3 && s.offloads_optimizer());
  s.hook = from_seconds(a.number("hook_us") * 1e-6);
  refuse_as_deepspeed_does(s);
  return s;
}

void require_machine(const DeepSpeedSettings& settings, const Machine& machine) {
  if (machine.fabric(settings.ranks) == nullptr) {
    std::string reach = machine.fabrics.empty() ? "it has no fabric at all" : "";
    for (const Fabric& fabric : machine.fabrics)
      reach += (reach.empty() ? "" : ", ") + fabric.name + " reaches " + std::to_string(fabric.max_ranks);
    refuse_setting("ranks=" + std::to_string(settings.ranks) + " is more than machine '" + machine.name +
                   "' connects: " + reach + ".");
  }
  const auto require_tier = [&](const char* tier) {
    if (machine.tier(tier) < 0)
      refuse_setting("machine '" + machine.name + "' has no tier '" + tier + "' to offload to.");
  };
  if (settings.offloads_optimizer()) require_tier("host");
  if (settings.offload_optimizer == OffloadDevice::nvme || settings.offload_param == OffloadDevice::nvme)
    require_tier("nvme");
  if (settings.reads_into_gpu() && machine.route(machine.tier("nvme"), machine.tier("hbm"), false) == nullptr)
    refuse_setting("aio_use_gds=1 (GPUDirect Storage): machine '" + machine.name +
                   "' has no route from nvme to hbm; expected one in its file.");
}

AsynchronousIo DeepSpeedSettings::parameter_reads() const {
  AsynchronousIo io = aio;
  if (aio.use_gds) io.overlap_events = true;
  return io;
}

AsynchronousIo DeepSpeedSettings::parameter_writes() const {
  AsynchronousIo io = aio;
  if (aio.use_gds) io.intra_op_parallelism = 1;
  return io;
}

}  // namespace memwall
