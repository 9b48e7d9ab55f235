#include "policies/sharding/deepspeed_step.h"

#include <algorithm>
#include <optional>
#include <string>

namespace memwall {
namespace {

constexpr Bytes kNormBytes = 4, kFlagBytes = 1;

class FlatStep {
 public:
  FlatStep(DeepSpeedProgram& program, const FlatLayout& layout, const DeepSpeedSettings& settings,
           DeepSpeedUpdate& update, ZenFlow& zenflow)
      : p_(program), edit_(program.edit()), layout_(layout), settings_(settings), update_(update), zenflow_(zenflow) {
    for (const FlatGroup& group : layout.groups()) {
      elements_ += group.partition;
      bytes_ += group.partition * group.element;
      const StorageId last = group.parameters.back();
      edit_.resize(last, edit_.tables().storages[last].bytes + (group.padded - group.elements) * group.element);
    }
    if (!settings.offloads_optimizer()) return;
    update.place_states("host", 1);
    for (const FlatGroup& group : layout.groups())
      sent_.push_back(p_.host_storage(group.partition * group.element, StorageKind::parameter, "16_bit_partition"));
    if (settings.zenflow.on && settings.zenflow.overlap_step) make_process();
  }

  void run(const OwnedGradients& owned, OpId next_backward) {
    const bool on_host = settings_.offloads_optimizer();
    const StorageId gradients =
        on_host ? owned.host
                : p_.device_storage(4 * elements_, StorageKind::gradient, owned.stream, "fp32_flat_gradients");
    const StepPlace place = update_.take_out(owned.last_backward, next_backward, on_host ? kNoStorage : gradients);
    if (is_16_bit()) sum_over_ranks(place, owned.device, "overflow", kFlagBytes);
    sum_over_ranks(place, owned.device, "norm", kNormBytes);
    if (settings_.zenflow.on && settings_.zenflow.overlap_step)
      step_in_process(place, owned);
    else if (settings_.delayed_parameter_update)
      step_beside(place, owned);
    else if (on_host)
      step_on_host(place, gradients);
    else
      step_on_device(place, owned.device, gradients);
    for (const FlatGroup& group : layout_.groups()) spread(place, group);
    if (settings_.zenflow.on && settings_.zenflow.overlap_step)
      update_.unscale_on_host(place.end, elements_, owned.host_made);
    zenflow_.end_step(number_++, place.end, place.stream);
  }

 private:
  // Updated parameters, from those that updated them to all of their group.
  void spread(const StepPlace& place, const FlatGroup& group) {
    const RankSet among{settings_.partition_ranks, 1};
    if (!settings_.broadcasts_partitions)
      return p_.collective(place.end, place.stream, CollectiveKind::all_gather, group.padded * group.element,
                           group.parameters, group.parameters, among);
    // A rank owns whole parameters there, so that of many ranks some have none.
    const std::size_t owners = std::min<std::size_t>(settings_.partition_ranks, group.parameters.size());
    for (std::size_t i = 0; i < owners; ++i)
      p_.collective(place.end, place.stream, CollectiveKind::broadcast,
                    group.elements * group.element / static_cast<Bytes>(owners), group.parameters, group.parameters,
                    among);
  }

  // Source: deepspeed/runtime/engine.py, _configure_zero_optimizer (check_grad_overflow, by default with bf16, too).
  bool is_16_bit() const {
    return std::ranges::any_of(layout_.groups(), [](const FlatGroup& group) { return group.element == 2; });
  }

  // A number (the norm; whether one is not finite) of the rank's gradients and then of all; the host reads it.
  // Offloaded gradients have been measured on their way.
  void sum_over_ranks(const StepPlace& place, const Storages& owned, const char* what, Bytes bytes) {
    const StorageId sum =
        p_.device_storage(bytes, StorageKind::workspace, place.stream, std::string("gradient_") + what);
    edit_.alloc(place.begin, sum);
    p_.kernel(place.begin, place.stream, what, settings_.offloads_optimizer() ? bytes : bytes_, owned, {sum});
    p_.collective(place.begin, place.stream, CollectiveKind::all_reduce, bytes, {sum}, {sum});
    p_.synchronize_stream(place.begin, place.stream);
    edit_.free(place.begin, sum);
  }

  void step_on_device(const StepPlace& place, const Storages& owned, StorageId gradients) {
    flatten_to_fp32(p_, place.begin, place.stream, owned, {bytes_, gradients});
    for (const StorageId buffer : owned) edit_.free(place.begin, buffer);
    p_.kernel(place.begin, place.stream, "unscale_and_clip", 8 * elements_, {gradients}, {gradients});
    update_.on_device(place.end, place.stream, elements_, gradients);
    edit_.free(place.end, gradients);
    for (const FlatGroup& group : layout_.groups())
      p_.kernel(place.end, place.stream, "cast", group.partition * (4 + group.element), update_.states(),
                group.parameters);
  }

  void step_on_host(const StepPlace& place, StorageId gradients) {
    p_.synchronize_device(place.end);
    for (std::size_t i = 0; i < sent_.size(); ++i) {
      const FlatGroup& group = layout_.groups()[i];
      update_.on_host(place.end, group.partition, gradients, {sent_[i]});
      p_.copy(place.end, place.stream, group.partition * group.element, sent_[i], group.parameters);
    }
  }

  // A thread of its own updates with the gradients of the step before, from the first op of forward on. What it makes
  // is sent once backward is over.
  void step_beside(const StepPlace& place, const OwnedGradients& owned) {
    const OpId beside = std::min<OpId>(owned.first_forward + 1, owned.last_backward);
    const InsertionPoint begin{beside, true};
    if (!thread_) thread_ = edit_.builder().add_thread("deepspeed.cpu_adam");
    p_.hand_over(begin, owned.first_forward, thread_);
    for (std::size_t i = 0; i < sent_.size(); ++i)
      update_.on_host(begin, layout_.groups()[i].partition, owned.host, {sent_[i]}, {}, thread_);
    p_.synchronize_device(place.end);
    p_.hand_over(place.end, beside);
    send_parameters(place);
    p_.synchronize_event(place.end, edit_.record(place.end, place.stream));  // the next update writes what is sent
  }

  // What ZenFlow's process has besides: a second pair of moments, and of each group a copy of the parameters, which a
  // cast on the CPU turns into what is sent; none of it is page-locked.
  void make_process() {
    p_.pageable_storage(8 * elements_, StorageKind::optimizer_state, "second_moments");
    for (const FlatGroup& group : layout_.groups()) {
      copies_.push_back(p_.pageable_storage(4 * group.partition, StorageKind::parameter, "stale_parameters"));
      cast_.push_back(p_.pageable_storage(group.partition * group.element, StorageKind::parameter, "cast_parameters"));
    }
  }

  // The process updates with the gradients of the step before, from where that step ended on. What it has left is sent
  // once this step's gradients have arrived.
  void step_in_process(const StepPlace& place, const OwnedGradients& owned) {
    const OpId beside = std::min<OpId>(owned.first_forward + 1, owned.last_backward);
    const InsertionPoint begin{beside, true};
    if (!thread_) thread_ = edit_.builder().add_thread("deepspeed.zenflow_adam");
    p_.hand_over(begin, owned.first_forward, thread_);
    for (std::size_t i = 0; i < copies_.size(); ++i)
      update_.adam_beside(begin, layout_.groups()[i].partition, owned.host, copies_[i], *thread_);
    p_.hand_over(place.end, beside);
    for (std::size_t i = 0; i < copies_.size(); ++i) {
      const FlatGroup& group = layout_.groups()[i];
      update_.cast_on_host(place.end, group.partition, copies_[i], {cast_[i]});
      p_.copy(place.end, place.stream, group.partition * group.element, cast_[i], group.parameters, true);
    }
  }

  void send_parameters(const StepPlace& place) {
    for (std::size_t i = 0; i < sent_.size(); ++i) {
      const FlatGroup& group = layout_.groups()[i];
      p_.copy(place.end, place.stream, group.partition * group.element, sent_[i], group.parameters);
    }
  }

  DeepSpeedProgram& p_;
  TraceEdit& edit_;
  const FlatLayout& layout_;
  const DeepSpeedSettings& settings_;
  DeepSpeedUpdate& update_;
  ZenFlow& zenflow_;
  std::size_t number_ = 0;  // of the step
  std::int64_t elements_ = 0;
  Bytes bytes_ = 0;
  Storages sent_;                        // by group: the updated slice on the host
  Storages copies_, cast_;               // by group: of zenflow_overlap_step
  std::optional<std::uint16_t> thread_;  // that updates beside the step
};

}  // namespace

void step_flat_partition(DeepSpeedProgram& program, const FlatLayout& layout, const DeepSpeedReduction& reduced,
                         const DeepSpeedSettings& settings, DeepSpeedUpdate& update, ZenFlow& zenflow) {
  FlatStep step(program, layout, settings, update, zenflow);
  for (std::size_t i = 0; i < reduced.steps.size(); ++i)
    step.run(reduced.steps[i], i + 1 < reduced.steps.size() ? reduced.steps[i + 1].last_backward : kNoOp);
}

}  // namespace memwall
