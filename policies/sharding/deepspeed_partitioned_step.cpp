#include "policies/sharding/deepspeed_partitioned_step.h"

#include <algorithm>

#include "sim/error.h"

namespace memwall {
namespace {

class PartitionedStep {
 public:
  PartitionedStep(DeepSpeedProgram& program, const std::vector<DeepSpeedSubGroup>& groups,
                  const ScatteredGradients& gradients, const DeepSpeedFetches& fetches,
                  const DeepSpeedSettings& settings, DeepSpeedUpdate& update)
      : p_(program),
        edit_(program.edit()),
        groups_(groups),
        gradients_(gradients),
        fetches_(fetches),
        settings_(settings),
        update_(update) {
    for (const DeepSpeedSubGroup& group : groups) {
      elements_ += group.elements;
      bytes_ += group.bytes;
      if (group.on_host) on_host_ += group.elements;
      largest_ = std::max(largest_, group.elements);
    }
    if (!settings.offloads_optimizer()) return;
    const bool on_nvme = settings.offload_optimizer == OffloadDevice::nvme;
    update.place_states(on_nvme ? "nvme" : "host",
                        elements_ > 0 ? static_cast<double>(on_host_) / static_cast<double>(elements_) : 1);
    Bytes sent = settings.offload_param == OffloadDevice::none ? bytes_ : 0;
    for (const DeepSpeedSubGroup& group : groups) sent = std::max(sent, group.bytes_on_nvme);
    if (sent > 0) sent_ = p_.host_storage(sent, StorageKind::parameter, "16_bit_partitions");
    if (on_nvme) make_swap_buffers();
  }

  void run(OpId last_backward, OpId next_backward) {
    const StepPlace place =
        update_.take_out(last_backward, next_backward, settings_.offloads_optimizer() ? kNoStorage : gradients_.buffer);
    norm(place);
    if (settings_.offloads_optimizer()) p_.synchronize_device(place.end);
    if (settings_.offload_optimizer == OffloadDevice::nvme)
      step_from_nvme(place);
    else
      for (const DeepSpeedSubGroup& group : groups_)
        group.on_host ? step_on_host(place, group) : step_on_device(place, group);
    gather_persistent(place);
  }

 private:
  void norm(const StepPlace& place) {
    constexpr Bytes kNorm = 8;  // in fp64. Source: deepspeed/runtime/zero/utils.py, get_norm_dtype
    const StorageId norm = p_.device_storage(kNorm, StorageKind::workspace, place.stream, "gradient_norm");
    edit_.alloc(place.begin, norm);
    const bool there = !settings_.offloads_optimizer();
    p_.kernel(place.begin, place.stream, "norm", there ? bytes_ : kNorm,
              there ? Storages{gradients_.buffer} : Storages{}, {norm});
    p_.collective(place.begin, place.stream, CollectiveKind::all_reduce, kNorm, {norm}, {norm});
    p_.synchronize_stream(place.begin, place.stream);
    edit_.free(place.begin, norm);
  }

  void step_on_device(const StepPlace& place, const DeepSpeedSubGroup& group) {
    const Bytes wide_bytes = 4 * group.elements;
    StorageId wide = gradients_.wide_on_device;
    if (wide == kNoStorage) {
      wide = p_.device_storage(wide_bytes, StorageKind::gradient, place.stream, "fp32_sub_group_gradients");
      edit_.alloc(place.end, wide);
      p_.kernel(place.end, place.stream, "flatten_to_fp32", group.bytes + wide_bytes, {gradients_.buffer}, {wide});
    }
    p_.kernel(place.end, place.stream, "unscale_and_clip", 2 * wide_bytes, {wide}, {wide});
    update_.on_device(place.end, place.stream, group.elements, wide);
    if (wide != gradients_.wide_on_device) edit_.free(place.end, wide);
    p_.kernel(place.end, place.stream, "cast", wide_bytes + group.bytes, update_.states_on_device(), group.parameters);
  }

  // The result goes to where partitions live: by the cast itself, through NVMe's queue, or over the bus.
  void step_on_host(const StepPlace& place, const DeepSpeedSubGroup& group, StorageId swapped = kNoStorage) {
    Storages sent = group.in_host_memory;
    const bool sends = settings_.offload_param == OffloadDevice::none;
    if (sends || !group.on_nvme.empty()) sent.push_back(sent_);
    update_.on_host(place.end, group.elements, gradients_.wide, sent, swapped);
    if (sends) p_.copy(place.end, place.stream, group.bytes, sent_, group.parameters, true);
    if (!group.on_nvme.empty())
      p_.synchronize_event(place.end,
                           p_.storage_io(place.end, false, group.bytes_on_nvme, sent_, group.on_nvme, settings_.aio));
  }

  // ---- NVMe ----

  // A sub-group's fp32 copy and moments, each in a buffer of its own.
  void make_swap_buffers() {
    const auto per_group = static_cast<std::int64_t>(update_.bytes_per_parameter() / 4 + 0.5);
    const bool pipelined = settings_.pipeline_read || settings_.pipeline_write;
    const std::int64_t needed = per_group * (pipelined ? 2 : 1);
    if (settings_.optimizer_buffer_count < per_group)
      throw UsageError(
          "Policy 'deepspeed': offload_optimizer_buffer_count=" + std::to_string(settings_.optimizer_buffer_count) +
          " does not hold the " + std::to_string(per_group) + " tensors of a sub-group; expected at least " +
          std::to_string(needed) + ".");
    for (std::int64_t i = 0; i < (pipelined ? 2 : 1); ++i)
      swap_.push_back(p_.host_storage(4 * largest_ * per_group, StorageKind::workspace, "optimizer_swap_buffers"));
    const std::int64_t rest = settings_.optimizer_buffer_count - needed;
    if (rest > 0) p_.host_storage(4 * largest_ * rest, StorageKind::workspace, "unused_swap_buffers");
  }

  void step_from_nvme(const StepPlace& place) {
    std::vector<std::uint32_t> read(groups_.size()), written(groups_.size());
    const auto buffer = [&](std::size_t k) { return swap_[k % swap_.size()]; };
    const auto start_read = [&](std::size_t k) { read[k] = swap(place, k, buffer(k), true); };
    if (settings_.pipeline_read) start_read(0);
    for (std::size_t k = 0; k < groups_.size(); ++k) {
      if (!settings_.pipeline_read) start_read(k);
      p_.synchronize_event(place.end, read[k]);
      if (settings_.pipeline_write && k > 0) p_.synchronize_event(place.end, written[k - 1]);
      if (settings_.pipeline_read && k + 1 < groups_.size()) start_read(k + 1);
      step_on_host(place, groups_[k], buffer(k));
      written[k] = swap(place, k, buffer(k), false);
      if (!settings_.pipeline_write) p_.synchronize_event(place.end, written[k]);
    }
    if (!groups_.empty()) p_.synchronize_event(place.end, written.back());
  }

  // States and sub-groups stand in one order.
  Storages states_of(std::size_t k) const {
    Bytes all = 0, before = 0;
    for (const StorageId id : update_.states()) all += edit_.tables().storages[id].bytes;
    Storages own;
    for (const StorageId id : update_.states()) {
      const Bytes middle = before + edit_.tables().storages[id].bytes / 2;
      before += edit_.tables().storages[id].bytes;
      const double place = all > 0 ? static_cast<double>(middle) / static_cast<double>(all) : 0;
      if (std::min(static_cast<std::size_t>(place * static_cast<double>(groups_.size())), groups_.size() - 1) == k)
        own.push_back(id);
    }
    return own;
  }

  std::uint32_t swap(const StepPlace& place, std::size_t k, StorageId buffer, bool reads) {
    const auto bytes = static_cast<Bytes>(update_.bytes_per_parameter() * static_cast<double>(groups_[k].elements));
    return p_.storage_io(place.end, reads, bytes, buffer, states_of(k), settings_.aio);
  }

  // Each by itself. Source: deepspeed/runtime/zero/partition_parameters.py, _allgather_params_coalesced.
  void gather_persistent(const StepPlace& place) {
    if (fetches_.persistent.empty()) return;
    std::uint32_t gathered = 0;
    for (const auto& [parameter, storage] : fetches_.persistent)
      gathered =
          p_.start_collective(place.end, place.stream, CollectiveKind::all_gather,
                              edit_.tables().storages[parameter].bytes * settings_.ranks, {parameter}, {storage});
    edit_.wait(place.end, gathered, place.stream);
    p_.synchronize_device(place.end);
  }

  DeepSpeedProgram& p_;
  TraceEdit& edit_;
  const std::vector<DeepSpeedSubGroup>& groups_;
  const ScatteredGradients& gradients_;
  const DeepSpeedFetches& fetches_;
  const DeepSpeedSettings& settings_;
  DeepSpeedUpdate& update_;
  std::int64_t elements_ = 0, on_host_ = 0, largest_ = 0;
  Bytes bytes_ = 0;
  StorageId sent_ = kNoStorage;  // updated partitions on the host
  Storages swap_;                // pinned buffers that sub-groups come to from NVMe
};

}  // namespace

std::vector<DeepSpeedSubGroup> sub_groups(const ZeroAnalysis& analysis, const FetchPlan& plan,
                                          const DeepSpeedSettings& settings) {
  std::vector<DeepSpeedSubGroup> groups;
  for (const StorageId id : analysis.parameters) {
    const std::int64_t share = (plan.elements.at(id) + settings.ranks - 1) / settings.ranks;
    if (groups.empty() || (groups.back().elements > 0 && groups.back().elements + share > settings.sub_group_size))
      groups.emplace_back();
    groups.back().parameters.push_back(id);
    groups.back().elements += share;
    groups.back().bytes += share * plan.element.at(id);
    if (settings.offload_param == OffloadDevice::none) continue;
    (plan.on_nvme.contains(id) ? groups.back().on_nvme : groups.back().in_host_memory).push_back(id);
    if (plan.on_nvme.contains(id)) groups.back().bytes_on_nvme += share * plan.element.at(id);
  }
  if (!settings.offloads_optimizer()) return groups;
  const auto first_on_host =
      static_cast<std::size_t>((1 - settings.ratio) * static_cast<double>(groups.size()));  // as int() rounds
  for (std::size_t i = first_on_host; i < groups.size(); ++i) groups[i].on_host = true;
  return groups;
}

void step_partitions(DeepSpeedProgram& program, const std::vector<DeepSpeedSubGroup>& groups,
                     const ScatteredGradients& gradients, const DeepSpeedFetches& fetches,
                     const DeepSpeedSettings& settings, DeepSpeedUpdate& update) {
  PartitionedStep step(program, groups, gradients, fetches, settings, update);
  for (std::size_t i = 0; i < gradients.steps.size(); ++i)
    step.run(gradients.steps[i].first, i + 1 < gradients.steps.size() ? gradients.steps[i + 1].first : kNoOp);
}

}  // namespace memwall
