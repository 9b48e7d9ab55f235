#include "policies/sharding/deepspeed_update.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "policies/sharding/zero_partition.h"
#include "policies/trace/optimizer_step.h"

namespace memwall {
namespace {

constexpr double kAdamBytes = 28;  // read p, g, m, v; write p, m, v: all fp32
constexpr Bytes kUnscaleBytes = 8, kCpuAdamBytes = 28, kCastBytes = 6, kCopyBytes = 8;
constexpr Bytes kNewBytes = 2;  // of pages that the operating system clears before a cast fills them

}  // namespace

void flatten_to_fp32(DeepSpeedProgram& program, InsertionPoint point, std::uint16_t stream, const Storages& owned,
                     FlatGradients flat) {
  TraceEdit& edit = program.edit();
  const StorageId narrow = program.device_storage(flat.bytes, StorageKind::gradient, stream, "flat_gradients");
  edit.alloc(point, narrow);
  program.kernel(point, stream, "flatten_gradients", 2 * flat.bytes, owned, {narrow});
  edit.alloc(point, flat.wide);
  program.kernel(point, stream, "flatten_to_fp32", flat.bytes + edit.tables().storages[flat.wide].bytes, {narrow},
                 {flat.wide});
  edit.free(point, narrow);
}

DeepSpeedUpdate::DeepSpeedUpdate(DeepSpeedProgram& program, const Dataflow& flow, const ZeroAnalysis& analysis,
                                 const Pricer& pricer, std::int64_t elements, std::int64_t own, bool adds_master)
    : p_(program),
      edit_(program.edit()),
      t_(program.base()),
      flow_(flow),
      analysis_(analysis),
      pricer_(pricer),
      elements_(elements),
      own_(own),
      is_split_(t_.storages.size(), false) {
  for (const auto* group : {&analysis.parameters, &analysis.gradients, &analysis.states, &analysis.temporaries})
    for (const StorageId id : *group) is_split_[id] = true;
  const Optimizer optimizer = find_optimizer(t_, flow);
  bool has_master = false;
  double moments = 8;
  if (!optimizer.steps.empty()) {
    const ParameterCount count = count_parameters(t_, flow, all_together(optimizer.steps));
    has_master = count.master;
    moments = count.moment_bytes;
    widening_ = moments == 4 && !has_master ? 2 : 1;
    if (moments == 4 || moments == 8) work_ = kAdamBytes / count.update_bytes();
    for (const OptimizerStep& step : optimizer.steps)
      optimizer_ops_.insert(optimizer_ops_.end(), step.ops.begin(), step.ops.end());
    for (const StorageId id : optimizer.temporaries)
      for (const OpId end : {flow.alloc(id), flow.free(id)})
        if (end != kNoOp) edit_.remove(end);
  } else {
    optimizer_ops_ = optimizer_ops();
  }
  std::ranges::sort(optimizer_ops_);
  widen_and_cut();
  if (!has_master && adds_master) {
    master_ = p_.device_storage(4 * own_, StorageKind::optimizer_state, 0, "fp32_partition");
    edit_.tables().storages[master_].preexisting = true;
    states_.push_back(master_);
  }
  Bytes bytes = 0;
  for (const StorageId id : states_) bytes += edit_.tables().storages[id].bytes;
  bytes_per_parameter_ = static_cast<double>(bytes) / static_cast<double>(std::max<std::int64_t>(own_, 1));
  on_device_ = states_;
}

// Of an optimizer without states.
std::vector<OpId> DeepSpeedUpdate::optimizer_ops() const {
  std::vector<OpId> ops;
  for (const OpId id : analysis_.updates)
    for (const Use& use : t_.uses_of(t_.ops[id]))
      if (use.access == Access::write && t_.storages[use.storage].kind == StorageKind::parameter) {
        ops.push_back(id);
        break;
      }
  return ops;
}

// So many elements per parameter as before, in fp32: the last state takes what the padding needs.
void DeepSpeedUpdate::widen_and_cut() {
  Partition partition(t_.storages.size(), p_.parts());
  partition.cut_together(t_, flow_, analysis_.states);
  double per_parameter = 0;
  Bytes sum = 0;
  for (const StorageId id : analysis_.states) {
    per_parameter += widening_ * static_cast<double>(t_.storages[id].bytes) / (4 * static_cast<double>(elements_));
    const Bytes share = static_cast<Bytes>(widening_) * partition.share(id);
    edit_.resize(id, share);
    // Made before the first step, unlike torch.optim's (initialize_optimizer_states of all three stages).
    Storage& state = edit_.tables().storages[id];
    state.label = edit_.tables().strings.intern(edit_.tables().strings[state.label] + " of a partition");
    sum += share;
    states_.push_back(id);
  }
  const double whole = std::round(per_parameter);
  if (states_.empty() || std::abs(per_parameter - whole) > 1e-3 * whole) return;
  StorageId largest = states_.front();
  for (const StorageId id : states_)
    if (edit_.tables().storages[id].bytes >= edit_.tables().storages[largest].bytes) largest = id;
  const Bytes padded = static_cast<Bytes>(whole) * 4 * own_;
  edit_.resize(largest, std::max<Bytes>(0, edit_.tables().storages[largest].bytes + padded - sum));
}

void DeepSpeedUpdate::place_states(const std::string& tier, double share_there) {
  on_device_.clear();
  const double all = static_cast<double>(states_.size());
  const std::uint8_t place = edit_.tables().place(tier);
  for (std::size_t i = 0; i < states_.size(); ++i) {
    // The last ones, as the last sub-groups do.
    const bool stays = static_cast<double>(i) < (1 - share_there) * all;
    (stays ? on_device_ : on_host_).push_back(states_[i]);
    if (stays) continue;
    Storage& state = edit_.tables().storages[states_[i]];
    state.place = place;
    state.pinned = tier == "host";
  }
}

bool DeepSpeedUpdate::clears_gradients(const Op& op) const {
  const auto uses = t_.uses_of(op);
  return std::ranges::all_of(uses, [this](const Use& use) {
    return use.access == Access::write && t_.storages[use.storage].kind == StorageKind::gradient;
  });
}

StepPlace DeepSpeedUpdate::take_out(OpId last_backward, OpId next_backward, StorageId gradients) {
  StepPlace place;
  measured_ = {};
  OpId first = kNoOp, last = kNoOp;
  for (const OpId id : analysis_.updates) {
    if (id < last_backward || id > next_backward || edit_.removed(id)) continue;
    const Op& op = t_.ops[id];
    if (clears_gradients(op)) {
      edit_.remove(id);
      continue;
    }
    if (first == kNoOp) first = id;
    last = id;
    if (!std::ranges::binary_search(optimizer_ops_, id)) keep_scaled(id, gradients);
  }
  for (const OpId id : optimizer_ops_) {
    if (id < last_backward || id > next_backward) continue;
    const Op& op = t_.ops[id];
    first = std::min(first, id);
    last = last == kNoOp ? id : std::max(last, id);
    measured_.duration += op.duration;
    measured_.bytes += op.bytes;
    measured_.flops += op.flops;
    if (op.bytes == 0)
      for (const Use& use : t_.uses_of(op)) measured_.bytes += t_.storages[use.storage].bytes;
    measured_.operator_class = op.operator_class;
    measured_.data_type = op.data_type;
    place.stream = op.stream;
    edit_.remove(id);
  }
  place.begin = {first == kNoOp ? last_backward : first, first == kNoOp};
  place.end = {last == kNoOp ? last_backward : last, true};
  return place;
}

// A gradient norm, a scaling, of the step's own: on the rank's part of fp32 gradients.
void DeepSpeedUpdate::keep_scaled(OpId id, StorageId gradients) {
  const Op& old = t_.ops[id];
  double before = 0, after = 0;
  std::vector<Use> uses;
  std::set<Access> done;
  for (const Use& use : t_.uses_of(old)) {
    const auto bytes = static_cast<double>(t_.storages[use.storage].bytes);
    before += bytes;
    after += is_split_[use.storage] ? bytes / p_.parts() : bytes;
    const bool is_gradient = std::ranges::binary_search(analysis_.gradients, use.storage);
    if (!is_gradient)
      uses.push_back(use);
    else if (gradients != kNoStorage && done.insert(use.access).second)
      uses.push_back({gradients, 0, use.access});
  }
  Op op = old;
  const double share = before > 0 ? after / before : 1;
  op.bytes = std::llround(static_cast<double>(old.bytes) * share);
  op.flops = old.flops * share;
  op.duration = pricer_.scaled(old, op.bytes, op.flops);
  if (op.origin == Origin::measured) op.origin = Origin::transferred;
  edit_.replace(id, op, uses);
}

void DeepSpeedUpdate::on_device(InsertionPoint point, std::uint16_t stream, std::int64_t elements,
                                StorageId gradients) {
  const double share =
      work_ * static_cast<double>(elements) / static_cast<double>(std::max<std::int64_t>(elements_, 1));
  Op op;
  op.kind = OpKind::kernel;
  op.stream = stream;
  op.name = edit_.tables().strings.intern(p_.prefix() + "optimizer");
  op.operator_class = OperatorClass::optimizer;
  op.data_type = DataType::fp32;
  op.host_cost = edit_.costs().launch;
  op.bytes = std::llround(static_cast<double>(measured_.bytes) * share);
  op.flops = measured_.flops * share;
  op.duration = pricer_.scaled(measured_, op.bytes, op.flops);
  std::vector<Use> uses{{gradients, TraceBuilder::kLatest, Access::read}};
  for (const StorageId id : on_device_) uses.push_back({id, TraceBuilder::kLatest, Access::read});
  for (const StorageId id : on_device_) uses.push_back({id, 0, Access::write});
  edit_.insert(point, op, uses);
}

// What is not page-locked is allocated for the cast, and given back behind its copy.
Bytes DeepSpeedUpdate::cast_bytes(const Storages& sent) const {
  const auto& storages = edit_.tables().storages;
  const bool is_new = std::ranges::any_of(sent, [&](StorageId id) { return !storages[id].pinned; });
  return kCastBytes + (is_new ? kNewBytes : 0);
}

void DeepSpeedUpdate::on_host(InsertionPoint point, std::int64_t elements, StorageId gradients, const Storages& sent,
                              const Storages& swapped, std::optional<std::uint16_t> thread) {
  const Storages& states = swapped.empty() ? on_host_ : swapped;
  p_.host_work(point, "unscale_and_clip", kUnscaleBytes * elements, {gradients}, {gradients}, thread);
  Storages reads = states;
  reads.push_back(gradients);
  p_.host_work(point, "cpu_adam", kCpuAdamBytes * elements, reads, states, thread);
  p_.host_work(point, "cast", cast_bytes(sent) * elements, states, sent, thread);
}

void DeepSpeedUpdate::unscale_on_host(InsertionPoint point, std::int64_t elements, StorageId gradients) {
  p_.host_work(point, "unscale_and_clip", kUnscaleBytes * elements, {gradients}, {gradients});
}

void DeepSpeedUpdate::adam_beside(InsertionPoint point, std::int64_t elements, StorageId gradients, StorageId copy,
                                  std::uint16_t thread) {
  Storages reads = on_host_, writes = on_host_;
  reads.push_back(gradients);
  p_.host_work(point, "cpu_adam", kCpuAdamBytes * elements, reads, writes, thread);
  p_.host_work(point, "copy_parameters", kCopyBytes * elements, on_host_, {copy}, thread);
}

void DeepSpeedUpdate::cast_on_host(InsertionPoint point, std::int64_t elements, StorageId from, const Storages& sent) {
  p_.host_work(point, "cast", cast_bytes(sent) * elements, {from}, sent);
}

void DeepSpeedUpdate::by_worker(InsertionPoint point, std::int64_t elements, StorageId gradients, StorageId buffer,
                                std::optional<std::uint16_t> thread) {
  Storages reads = on_host_;
  reads.push_back(buffer);
  p_.host_work(point, "copy_gradients", kCopyBytes * elements, {gradients}, {buffer}, thread);
  p_.host_work(point, "cpu_adam", kCpuAdamBytes * elements, reads, on_host_, thread);
}

void DeepSpeedUpdate::take_over(InsertionPoint point, std::int64_t elements) {
  p_.host_work(point, "copy_parameters", kCopyBytes * elements, on_host_, on_host_);
}

void DeepSpeedUpdate::cast_states(InsertionPoint point, std::int64_t elements, const Storages& sent) {
  p_.host_work(point, "cast", cast_bytes(sent) * elements, on_host_, sent);
}

}  // namespace memwall
