#include "policies/sharding/deepspeed_partitioned_step.h"

#include <algorithm>

#include "sim/error.h"

namespace memwall {
namespace {

class PartitionedStep {
 public:
  PartitionedStep(DeepSpeedProgram& program, const std::vector<DeepSpeedSubGroup>& groups,
                  const ScatteredGradients& gradients, const DeepSpeedFetches& fetches,
                  const DeepSpeedSettings& settings, DeepSpeedUpdate& update, OptimizerSwap swap, SuperOffload& super)
      : p_(program),
        edit_(program.edit()),
        groups_(groups),
        gradients_(gradients),
        fetches_(fetches),
        settings_(settings),
        update_(update),
        swap_(swap),
        super_(super) {
    for (std::size_t k = 0; k < groups.size(); ++k)
      for (const StorageId id : groups[k].parameters) group_of_[id] = k;
    for (const DeepSpeedSubGroup& group : groups) {
      elements_ += group.elements;
      bytes_ += group.bytes;
      if (group.on_host) on_host_ += group.elements;
    }
    if (!settings.offloads_optimizer()) return;
    const bool on_nvme = settings.offload_optimizer == OffloadDevice::nvme;
    update.place_states(on_nvme ? "nvme" : "host",
                        elements_ > 0 ? static_cast<double>(on_host_) / static_cast<double>(elements_) : 1);
    Bytes sent = settings.offload_param == OffloadDevice::none ? bytes_ : 0;
    for (const DeepSpeedSubGroup& group : groups) sent = std::max(sent, group.bytes_on_nvme);
    if (sent > 0) sent_ = host_buffer(sent);
    if (on_nvme) divide_swap_buffers();
  }

  void run(OpId last_backward, OpId next_backward, const std::vector<UnswappedGradient>& unswapped) {
    const StepPlace place =
        update_.take_out(last_backward, next_backward, settings_.offloads_optimizer() ? kNoStorage : gradients_.buffer);
    super_.update_beside(number_++, last_backward, place.begin, update_, gradients_.wide);
    norm(place);
    if (settings_.offloads_optimizer()) p_.synchronize_device(place.end);
    if (settings_.offload_optimizer == OffloadDevice::nvme)
      step_from_nvme(place, unswapped);
    else
      for (const DeepSpeedSubGroup& group : groups_)
        group.on_host ? step_on_host(place, group, gradients_.wide) : step_on_device(place, group);
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
      flatten_to_fp32(p_, place.end, place.stream, {gradients_.buffer}, {group.bytes, wide});
    }
    p_.kernel(place.end, place.stream, "unscale_and_clip", 2 * wide_bytes, {wide}, {wide});
    update_.on_device(place.end, place.stream, group.elements, wide);
    if (wide != gradients_.wide_on_device) edit_.free(place.end, wide);
    p_.kernel(place.end, place.stream, "cast", wide_bytes + group.bytes, update_.states_on_device(), group.parameters);
  }

  // For what leaves the host in 16 bit. Partitions on the GPU are written by a copy of the fp32 ones (copy_ between
  // types and devices), for which PyTorch casts into new pageable memory. Source: stage3.py,
  // _reassign_or_swap_out_partitioned_parameters; pytorch/pytorch, aten/src/ATen/native/cuda/Copy.cu.
  StorageId host_buffer(Bytes bytes) {
    return settings_.offload_param == OffloadDevice::none
               ? p_.pageable_storage(bytes, StorageKind::parameter, "16_bit_partitions")
               : p_.host_storage(bytes, StorageKind::parameter, "16_bit_partitions");
  }

  // The result goes to where partitions live: by the cast itself, through NVMe's queue, or over the bus.
  void step_on_host(const StepPlace& place, const DeepSpeedSubGroup& group, StorageId gradients,
                    const Storages& swapped = {}) {
    Storages sent = group.in_host_memory;
    const bool sends = settings_.offload_param == OffloadDevice::none;
    if (sends || !group.on_nvme.empty()) sent.push_back(sent_);
    if (settings_.super_offload)
      super_.finish(place.end, group, update_, gradients, sent);
    else
      update_.on_host(place.end, group.elements, gradients, sent, swapped);
    if (sends) p_.copy(place.end, place.stream, group.bytes, sent_, group.parameters, true);
    if (!group.on_nvme.empty())
      p_.synchronize_event(place.end, p_.storage_io(place.end, false, group.bytes_on_nvme, {sent_}, group.on_nvme,
                                                    settings_.parameter_writes()));
  }

  // ---- NVMe ----

  // A sub-group's fp32 copy, moments and gradients, each in a buffer of its own.
  void divide_swap_buffers() {
    const Storages& buffers = swap_.buffers->buffers;
    const std::size_t per_group = static_cast<std::size_t>(update_.bytes_per_parameter() / 4 + 0.5) + 1;
    const std::size_t under_way = 1u + settings_.pipeline_read + settings_.pipeline_write;
    const std::size_t needed = per_group * std::min(under_way, groups_.size());
    if (buffers.size() < needed)
      throw UsageError("Policy 'deepspeed': ran out of swap buffers: offload_optimizer_buffer_count=" +
                       std::to_string(buffers.size()) + " does not hold the " + std::to_string(per_group) +
                       " tensors of each sub-group that is under way, its gradients among them; expected at least " +
                       std::to_string(needed) + ".");
    for (std::size_t first = 0; first < needed; first += per_group)
      sets_.emplace_back(buffers.begin() + static_cast<std::ptrdiff_t>(first),
                         buffers.begin() + static_cast<std::ptrdiff_t>(first + per_group));
  }

  const Storages& set(std::size_t k) const { return sets_[k % sets_.size()]; }
  Storages state_buffers(std::size_t k) const { return {set(k).begin(), set(k).end() - 1}; }
  bool pipelined() const { return settings_.pipeline_read || settings_.pipeline_write; }

  // Gradients that were written come with the states, or behind them where nothing is pipelined; those that stayed on
  // the GPU are copied meanwhile. Returns the events behind which all are there.
  std::vector<std::uint32_t> start_read(const StepPlace& place, std::size_t k,
                                        const std::vector<UnswappedGradient>& unswapped) {
    std::vector<std::uint32_t> events{swap_states(place, k, true)};
    if (!pipelined()) p_.synchronize_event(place.end, events.front());
    if (groups_[k].swapped_gradients > 0)
      events.push_back(p_.storage_io(place.end, true, groups_[k].swapped_gradients, {set(k).back()},
                                     {swap_.gradients->on_nvme()}, settings_.aio));
    if (!pipelined()) {
      p_.synchronize_event(place.end, events.back());
      events.clear();
    }
    for (const UnswappedGradient& gradient : unswapped) {
      if (group_of(gradient.parameter) != k) continue;
      p_.copy(place.end, place.stream, gradient.bytes, gradient.wide, {set(k).back()}, true);
      p_.free_behind(place.end, gradient.wide, place.stream);
    }
    return events;
  }

  void step_from_nvme(const StepPlace& place, const std::vector<UnswappedGradient>& unswapped) {
    std::vector<std::uint32_t> read, next;
    std::uint32_t written = 0;
    swap_.gradients->flush(place.end);
    for (std::size_t k = 0; k < groups_.size(); ++k) {
      const bool has_next = k + 1 < groups_.size();
      read = k > 0 && settings_.pipeline_read ? next : start_read(place, k, unswapped);
      for (const std::uint32_t event : read) p_.synchronize_event(place.end, event);
      if (settings_.pipeline_read && has_next) next = start_read(place, k + 1, unswapped);
      step_on_host(place, groups_[k], set(k).back(), state_buffers(k));
      if (settings_.pipeline_write && k > 0) p_.synchronize_event(place.end, written);
      written = swap_states(place, k, false);
      if (!settings_.pipeline_write || !has_next) p_.synchronize_event(place.end, written);
    }
  }

  std::size_t group_of(StorageId parameter) const {
    const auto found = group_of_.find(parameter);
    return found == group_of_.end() ? 0 : found->second;
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

  std::uint32_t swap_states(const StepPlace& place, std::size_t k, bool reads) {
    const auto bytes = static_cast<Bytes>(update_.bytes_per_parameter() * static_cast<double>(groups_[k].elements));
    return p_.storage_io(place.end, reads, bytes, state_buffers(k), states_of(k), settings_.aio);
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
  std::int64_t elements_ = 0, on_host_ = 0;
  Bytes bytes_ = 0;
  StorageId sent_ = kNoStorage;  // updated partitions on the host
  OptimizerSwap swap_;
  SuperOffload& super_;
  std::size_t number_ = 0;                     // of the step
  std::vector<Storages> sets_;                 // pinned buffers of one sub-group: of its states, then of its gradients
  std::map<StorageId, std::size_t> group_of_;  // by parameter
};

}  // namespace

std::vector<DeepSpeedSubGroup> sub_groups(const ZeroAnalysis& analysis, const FetchPlan& plan,
                                          const DeepSpeedSettings& settings) {
  std::vector<DeepSpeedSubGroup> groups;
  for (const StorageId id : analysis.trained) {
    const std::int64_t share = (plan.elements.at(id) + settings.ranks - 1) / settings.ranks;
    if (groups.empty() || (groups.back().elements > 0 && groups.back().elements + share > settings.sub_group_size))
      groups.emplace_back();
    groups.back().parameters.push_back(id);
    groups.back().elements += share;
    groups.back().bytes += share * plan.element.at(id);
    if (settings.offload_optimizer == OffloadDevice::nvme && is_swappable(4 * share, settings.aio))
      groups.back().swapped_gradients += 4 * share;
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
                     const DeepSpeedSettings& settings, DeepSpeedUpdate& update, OptimizerSwap swap,
                     SuperOffload& super) {
  PartitionedStep step(program, groups, gradients, fetches, settings, update, swap, super);
  for (std::size_t i = 0; i < gradients.steps.size(); ++i)
    step.run(gradients.steps[i].first, i + 1 < gradients.steps.size() ? gradients.steps[i + 1].first : kNoOp,
             gradients.unswapped[i]);
}

}  // namespace memwall
