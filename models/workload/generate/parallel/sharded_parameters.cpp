#include "models/workload/generate/parallel/sharded_parameters.h"

#include <algorithm>
#include <cassert>
#include <string>

namespace memwall {
namespace {

constexpr std::string_view kLayer = "layers.";

Tensor flat_at(Tape& tape, std::uint16_t stream, const char* label, std::int64_t elements, DataType type,
               StorageKind kind) {
  Tensor t = tape.make_at("hbm", stream, label, {elements}, type);
  tape.trace().storages[t.storage->id()].kind = kind;
  return t;
}

TapeKernel copy_of_lists(std::string_view name, DataType type, std::int64_t elements, Bytes bytes) {
  TapeKernel work;
  work.name = name;
  work.operator_class = OperatorClass::memory;
  work.type = type;
  work.shape = {elements};
  work.bytes = bytes;
  return work;
}

}  // namespace

std::int64_t part_of_model(const std::string& name) {
  if (name.compare(0, kLayer.size(), kLayer) == 0) return std::stoll(name.substr(kLayer.size()));
  return name == "words.weight" || name == "positions.weight" ? -1 : -2;
}

// Shares are cut along the first dimension, which is padded to a multiple of the ranks.
ShardedParameters::ShardedParameters(Tape& tape, Communicator& data, Communicator& tensor,
                                     const std::vector<Parameter*>& parameters)
    : tape_(tape), data_(data), tensor_(tensor) {
  for (Parameter* p : parameters) {
    const std::int64_t part = part_of_model(p->name), rows = p->value.shape.front(), ranks = data.ranks();
    if (groups_.empty() || groups_.back().part != part) {
      groups_.emplace_back();
      groups_.back().part = part;
    }
    groups_.back().parameters.push_back(p);
    groups_.back().elements += (rows + ranks - 1) / ranks * ranks * (p->value.elements() / rows);
    p->accumulated = [this, number = groups_.size() - 1](Parameter&) { arrived(number); };
  }
}

std::int64_t ShardedParameters::elements() const {
  std::int64_t sum = 0;
  for (const Group& group : groups_) sum += group.elements;
  return sum;
}

// The stream of gathers waits for the step before, which has updated the shares (FSDPState._root_pre_forward).
void ShardedParameters::unshard() {
  hand_over(tape_, 0, data_.stream());
  for (Group& group : groups_) {
    group.gathered = true;
    start_gather(group);
  }
}

void ShardedParameters::about_to_run(std::int64_t part) {
  const bool unsharding = std::ranges::any_of(groups_, [](const Group& group) { return bool(group.gathering); });
  if (unsharding) data_.wait();
  for (Group& group : groups_) {
    if (unsharding) {
      copy_out(group);
      group.gathering.reset();
    } else if (group.part == part && !group.gathered) {
      if (std::ranges::none_of(groups_, &Group::gathered)) hand_over(tape_, 0, data_.stream());
      group.gathered = true;
      start_gather(group);
      release_gathered();
      data_.wait();
      copy_out(group);
      Op done;
      done.kind = OpKind::event_record;
      done.target = copied_out_ = tape_.builder().add_event();
      tape_.append(done, "", {}, {});
      gathered_ = std::move(group.gathering);
    }
  }
}

// foreach_all_gather: this rank's share is cast into its place, and all shares are gathered.
void ShardedParameters::start_gather(Group& group) {
  const DataType type = group.parameters.front()->value.type;
  const std::int64_t share = group.elements / data_.ranks();
  group.gathering = flat_at(tape_, data_.stream(), "fsdp::all_gather_copy_in", group.elements, type,
                            StorageKind::communication_buffer);
  const Tensor& whole = group.gathering;
  Op cast;
  cast.kind = OpKind::kernel;
  cast.stream = data_.stream();
  cast.operator_class = OperatorClass::memory;
  cast.data_type = type;
  cast.shape = tape_.trace().shapes.intern({share});
  cast.bytes = share * (bytes_of(DataType::fp32) + bytes_of(type));
  const Tensor* const from[] = {&shares_};
  const Tensor* const to[] = {&whole};
  tape_.append(cast, "fsdp::all_gather_copy_in", from, to);
  Communicator::Collective what{CollectiveKind::all_gather, "c10d::_allgather_base_", whole.bytes(), type};
  what.others_first = false;  // the stream of gathers waits for nothing that is computed
  data_.start(what, to, to);
}

// foreach_all_gather_copy_out: into each parameter.
void ShardedParameters::copy_out(Group& group) {
  const DataType type = group.parameters.front()->value.type;
  std::vector<const Tensor*> writes;
  for (Parameter* p : group.parameters) {
    p->value.storage = tape_.make(p->name, p->value.shape, type).storage;
    tape_.trace().storages[p->value.storage->id()].kind = StorageKind::parameter;
    writes.push_back(&p->value);
  }
  const Tensor* const from[] = {&group.gathering};
  tape_.kernel(copy_of_lists("fsdp::split_with_sizes_copy", type, group.elements, 2 * group.gathering.bytes()), from,
               writes);
}

// FSDPCommContext.all_gather_state: what was gathered goes when the next has been started, or at the end of forward,
// and the stream from whose pool it is waits for the copy out of it.
void ShardedParameters::release_gathered() {
  if (!gathered_) return;
  Op wait;
  wait.kind = OpKind::event_wait;
  wait.target = copied_out_;
  wait.stream = data_.stream();
  tape_.append(wait, "", {}, {});
  gathered_.reset();
}

void ShardedParameters::end_forward() { release_gathered(); }

void ShardedParameters::begin_pass() {
  for (Group& group : groups_) group.pending = group.parameters.size();
}

// FSDPParam.to_accumulated_grad_if_needed, accumulate_unsharded_grad_if_needed
void ShardedParameters::arrived(std::size_t number) {
  Group& group = groups_[number];
  assert(group.pending > 0);
  if (--group.pending > 0) return;
  for (Parameter* p : group.parameters) {
    const bool first = !p->main_gradient;
    if (first) {
      p->main_gradient = tape_.make("fsdp::accumulated_gradient", p->value.shape, DataType::fp32);
      tape_.trace().storages[p->main_gradient.storage->id()].kind = StorageKind::gradient;
    }
    const std::int64_t elements = p->value.elements();
    const Bytes each = bytes_of(p->gradient.type) + (first ? 1 : 2) * bytes_of(DataType::fp32);
    TapeKernel add = copy_of_lists(first ? "aten::_to_copy" : "aten::add_", DataType::fp32, elements, elements * each);
    add.operator_class = first ? OperatorClass::memory : OperatorClass::elementwise;
    if (first)
      tape_.kernel(add, {&p->gradient}, {&p->main_gradient});
    else
      tape_.kernel(add, {&p->gradient, &p->main_gradient}, {&p->main_gradient});
    tape_.trace().storages[p->gradient.storage->id()].kind = StorageKind::workspace;
    p->gradient.reset();
  }
}

// foreach_reduce, and reshard: whole gradients and parameters go.
void ShardedParameters::scatter(Group& group) {
  if (scattered_) data_.wait();  // what the group before has sent goes
  std::vector<const Tensor*> reads;
  for (Parameter* p : group.parameters) {
    if (p->by_tokens) tensor_.all_reduce(p->main_gradient);
    reads.push_back(&p->main_gradient);
  }
  Tensor input =
      flat_at(tape_, 0, "fsdp::chunk_cat", group.elements, DataType::fp32, StorageKind::communication_buffer);
  const Tensor* const from[] = {&input};
  tape_.kernel(copy_of_lists("fsdp::chunk_cat", DataType::fp32, group.elements, 2 * input.bytes()), reads, from);
  for (Parameter* p : group.parameters) {
    p->main_gradient.reset();
    p->value.storage.reset();
  }
  group.gathered = false;
  group.gradient = flat_at(tape_, data_.stream(), "fsdp::reduce_scatter", group.elements / data_.ranks(),
                           DataType::fp32, StorageKind::gradient);
  const Tensor* const to[] = {&group.gradient};
  data_.start({CollectiveKind::reduce_scatter, "c10d::_reduce_scatter_base_", input.bytes(), DataType::fp32}, from, to);
  scattered_ = std::move(input);
}

void ShardedParameters::reduce() {
  for (std::size_t i = groups_.size(); i-- > 0;) scatter(groups_[i]);
  data_.wait();
  scattered_.reset();
}

Tensors ShardedParameters::gradients() const {
  Tensors all;
  for (const Group& group : groups_) all.push_back(group.gradient);
  return all;
}

void ShardedParameters::drop_gradients() {
  for (Group& group : groups_) group.gradient.reset();
}

}  // namespace memwall
