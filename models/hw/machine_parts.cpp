#include "models/hw/machine_parts.h"

#include "models/hw/machine_text.h"

namespace memwall {
namespace {

// Where a file does not say: as machine.proto has it.
constexpr Duration kPageCall = microseconds(60);
constexpr BytesPerSecond kPinning = 3e9;
constexpr Duration kPinnedAllocation = microseconds(100);

DataType data_type(schema::Peak::DataType t) {
  switch (t) {
    case schema::Peak::fp64:
      return DataType::fp64;
    case schema::Peak::fp32:
      return DataType::fp32;
    case schema::Peak::tf32:
      return DataType::tf32;
    case schema::Peak::fp16:
      return DataType::fp16;
    case schema::Peak::bf16:
      return DataType::bf16;
    case schema::Peak::fp8:
      return DataType::fp8;
    case schema::Peak::int8:
      return DataType::int8;
  }
  return DataType::unknown;
}

KernelEfficiency read_efficiency(const schema::Efficiency& from) {
  KernelEfficiency e;
  // The schema's enum repeats OperatorClass value by value; machine_file_test.cpp holds them together.
  e.operator_class = static_cast<OperatorClass>(from.operator_class());
  e.compute = share_of(from.compute_share());
  e.memory = share_of(from.memory_share());
  e.fixed = time_of(from.fixed());
  if (from.has_backward_share()) e.backward_memory = share_of(from.backward_share());
  e.width = parse_curve(from.width());
  if (from.has_residual()) e.residual = share_of(from.residual());
  return e;
}

MatrixUnits read_matrix(const schema::MatrixUnits& from) {
  MatrixUnits matrix;
  for (const auto& loop : from.main_loop())
    matrix.main_loops.push_back({data_type(loop.data_type()), share_of(loop.share()),
                                 loop.has_sustained_share() ? share_of(loop.sustained_share()) : 0,
                                 loop.has_record() ? number_of(loop.record(), Dimension::flop_rate) : 0});
  matrix.convolution = share_of(from.convolution_share());
  if (from.has_convolution_backward_share()) matrix.convolution_backward = share_of(from.convolution_backward_share());
  matrix.start_up = time_of(from.start_up());
  matrix.alignment = parse_curve(from.alignment());
  if (from.has_residual()) matrix.residual = share_of(from.residual());
  return matrix;
}

AttentionCost read_attention(const schema::Attention& from) {
  // The schema's enum repeats AttentionKernel value by value; machine_file_test.cpp holds them together.
  return {static_cast<AttentionKernel>(from.kernel()),
          parse_curve(from.forward()),
          number_of(from.backward_ratio(), Dimension::ratio),
          number_of(from.start_up_keys(), Dimension::count),
          number_of(from.causal_start_up_keys(), Dimension::count),
          from.has_residual() ? share_of(from.residual()) : 0,
          from.has_record() ? number_of(from.record(), Dimension::flop_rate) : 0};
}

}  // namespace

Gpu read_gpu(const schema::Gpu& from) {
  Gpu gpu;
  gpu.name = from.name();
  gpu.aliases.assign(from.alias().begin(), from.alias().end());
  gpu.compute_major = static_cast<int>(count_of(from.compute_major()));
  gpu.compute_minor = static_cast<int>(count_of(from.compute_minor()));
  gpu.multiprocessors = count_of(from.multiprocessors());
  gpu.threads_per_multiprocessor = count_of(from.threads_per_multiprocessor());
  gpu.l2_bytes = size_of(from.l2_capacity());
  gpu.l2_bandwidth = rate_of(from.l2_bandwidth());
  if (from.has_collective_multiprocessors())
    gpu.collective_multiprocessors = count_of(from.collective_multiprocessors());
  for (const auto& p : from.peak())
    gpu.peaks.push_back({data_type(p.data_type()), number_of(p.rate(), Dimension::flop_rate)});
  for (const auto& e : from.efficiency()) gpu.efficiencies.push_back(read_efficiency(e));
  if (from.has_matrix()) gpu.matrix = read_matrix(from.matrix());
  for (const auto& a : from.attention()) gpu.attention.push_back(read_attention(a));
  if (from.has_residency()) {
    gpu.l2_kept = number_of(from.residency().kept(), Dimension::ratio);
    gpu.l2_lost = number_of(from.residency().lost(), Dimension::ratio);
    gpu.l2_streaming = share_of(from.residency().streaming_share());
  }
  gpu.private_read_bandwidth = parse_curve(from.private_read_bandwidth(), Dimension::bandwidth);
  gpu.shared_read_bandwidth = parse_curve(from.shared_read_bandwidth(), Dimension::bandwidth);
  gpu.load_latency = parse_curve(from.load_latency(), Dimension::time);
  for (const auto& p : from.mig_profile())
    gpu.mig_profiles.push_back({p.name(), size_of(p.memory()), count_of(p.multiprocessors()),
                                count_of(p.compute_slices()), count_of(p.memory_slices()), count_of(p.count())});
  return gpu;
}

HostCosts read_host(const schema::Host& from) {
  HostCosts host;
  host.cores = count_of(from.cores());
  if (from.has_numa_nodes()) host.numa_nodes = count_of(from.numa_nodes());
  if (from.has_optimizer_threads()) host.optimizer_threads = count_of(from.optimizer_threads());
  host.optimizer_bandwidth = rate_of(from.optimizer_bandwidth());
  const schema::Calls& calls = from.calls();
  host.launch = time_of(calls.launch());
  host.launch_latency = time_of(calls.launch_latency());
  host.stream_gap = time_of(calls.stream_gap());
  host.copy_call = time_of(calls.copy());
  host.event_call = time_of(calls.event());
  host.allocator_call = time_of(calls.allocator());
  host.device_malloc = time_of(calls.device_malloc());
  host.device_free = time_of(calls.device_free());
  host.page_map = calls.has_page_map() ? time_of(calls.page_map()) : kPageCall;
  host.page_unmap = calls.has_page_unmap() ? time_of(calls.page_unmap()) : kPageCall;
  host.pinning = calls.has_pinning() ? rate_of(calls.pinning()) : kPinning;
  host.pinned_allocation = calls.has_pinned_allocation() ? time_of(calls.pinned_allocation()) : kPinnedAllocation;
  host.synchronize_return = time_of(calls.synchronize_return());
  if (calls.has_framework()) {
    host.eager_forward = time_of(calls.framework().eager_forward());
    host.eager_backward = time_of(calls.framework().eager_backward());
    host.eager_optimizer = time_of(calls.framework().eager_optimizer());
    host.compiled_call = time_of(calls.framework().compiled_call());
    if (calls.framework().has_residual()) host.framework_residual = share_of(calls.framework().residual());
  }
  return host;
}

CollectiveModel read_collective(const schema::Collective& from) {
  CollectiveModel model;
  model.name = from.name();
  // The schema's enums repeat CollectiveAlgorithm and CollectiveKind value by value; machine_file_test.cpp holds them.
  model.algorithm = static_cast<CollectiveAlgorithm>(from.algorithm());
  for (const int kind : from.kind()) model.kinds.push_back(static_cast<CollectiveKind>(kind));
  if (from.has_min_ranks()) model.min_ranks = count_of(from.min_ranks());
  if (from.has_max_ranks()) model.max_ranks = count_of(from.max_ranks());
  model.bus_bandwidth = rate_of(from.bus_bandwidth());
  model.step_latency = time_of(from.step_latency());
  model.inner_steps = from.has_inner_step_latency();
  if (model.inner_steps) model.inner_step_latency = time_of(from.inner_step_latency());
  model.base_latency = time_of(from.base_latency());
  model.efficiency = parse_curve(from.efficiency());
  if (from.has_residual()) model.residual = share_of(from.residual());
  return model;
}

StorageRequests read_requests(const schema::Requests& from) {
  StorageRequests requests;
  requests.block = size_of(from.block());
  requests.depth = number_of(from.depth(), Dimension::count);
  requests.latency = time_of(from.latency());
  if (from.has_rate()) requests.per_second = number_of(from.rate(), Dimension::frequency);
  return requests;
}

}  // namespace memwall
