#include "models/workload/generate/gradient_reduction.h"

#include <fmt/format.h>

#include <cassert>

#include "models/workload/generate/network.h"
#include "models/workload/generate/operators/communicator.h"
#include "models/workload/generate/operators/operators.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr Bytes kFirstBucket = Bytes{1} << 20, kBucket = Bytes{25} << 20;  // as DistributedDataParallel's defaults
constexpr std::uint16_t kComputeStream = 0;

void require_reduction_combination(const Recipe& recipe) {
  if (recipe.optimizer_in_backward)
    throw UsageError(
        "recipe.optimizer_in_backward with recipe.data_parallel above 1: gradients would be used before they are "
        "summed; expected one of them.");
  if (recipe.gradients_as_bucket_views && recipe.gradient_reduction == ReductionSchedule::after_backward)
    throw UsageError("recipe.gradients_as_bucket_views: there are no buckets with gradient_reduction after_backward.");
}

}  // namespace

GradientReduction::GradientReduction(Tape& tape, const Recipe& recipe, const std::vector<std::size_t>& order)
    : tape_(tape), recipe_(recipe) {
  if (recipe.data_parallel == 1) return;
  require_reduction_combination(recipe);
  tape.trace().ranks = recipe.data_parallel;
  stream_ = tape.builder().add_stream("communication", StreamRole::communication);
  if (recipe.gradient_reduction == ReductionSchedule::overlapped) make_buckets(order);
}

GradientReduction::~GradientReduction() {
  for (const auto& p : tape_.parameters()) p->accumulated = nullptr;
}

// A bucket is full once it has reached its limit (compute_bucket_assignment_by_size).
void GradientReduction::make_buckets(const std::vector<std::size_t>& order) {
  std::vector<Parameter*> parameters;
  Bytes bytes = 0, limit = kFirstBucket;
  for (const std::size_t number : order) {
    parameters.push_back(tape_.parameters()[number].get());
    bytes += parameters.back()->value.bytes();
    if (bytes < limit) continue;
    add_bucket(parameters);
    parameters.clear();
    bytes = 0;
    limit = kBucket;
  }
  if (!parameters.empty()) add_bucket(parameters);
}

void GradientReduction::add_bucket(const std::vector<Parameter*>& parameters) {
  buckets_.push_back(std::make_unique<Bucket>());
  Bucket& bucket = *buckets_.back();
  bucket.parameters = parameters;
  std::int64_t elements = 0;
  for (const Parameter* p : parameters) elements += p->value.elements();
  bucket.buffer = tape_.permanent(fmt::format("bucket {}", buckets_.size() - 1), {elements},
                                  parameters.front()->value.type, StorageKind::communication_buffer);
  for (Parameter* p : parameters) {
    Tensor view = bucket.buffer;
    view.shape = p->value.shape;
    view.strides = contiguous_strides(view.shape);
    bucket.views.push_back(view);
    // Kept gradients lie in the bucket from the beginning.
    if (recipe_.gradients_as_bucket_views && !recipe_.set_to_none) p->gradient = view;
    p->accumulated = [this, &bucket, view](Parameter& parameter) { arrived(parameter, bucket, view); };
  }
}

void GradientReduction::begin(bool last) {
  active_ = recipe_.data_parallel > 1 && last;
  next_ = 0;
  for (const auto& bucket : buckets_) bucket->pending = bucket->parameters.size();
}

// The gradient, divided by the ranks, goes to its place in the bucket.
void GradientReduction::arrived(Parameter& parameter, Bucket& bucket, const Tensor& view) {
  if (!active_) return;
  if (parameter.gradient.storage == view.storage) {
    kernel_into(tape_, "aten::div_", OperatorClass::elementwise, {&view}, view);
  } else {
    const Tensor gradient = parameter.gradient;
    kernel_into(tape_, "aten::mul", OperatorClass::elementwise, {&gradient}, view);
    if (recipe_.gradients_as_bucket_views) {
      parameter.gradient = view;  // what was made in backward goes
      tape_.trace().storages[gradient.storage->id()].kind = StorageKind::workspace;
    }
  }
  assert(bucket.pending > 0);
  --bucket.pending;
  for (; next_ < buckets_.size() && buckets_[next_]->pending == 0; ++next_) reduce(buckets_[next_]->buffer);
}

// Ring all-reduce: 2 (N-1)/N of the buffer leave each rank.
void GradientReduction::reduce(const Tensor& buffer) {
  hand_over(tape_, kComputeStream, stream_);
  Op op;
  op.kind = OpKind::collective;
  op.collective = CollectiveKind::all_reduce;
  op.stream = stream_;
  op.data_type = buffer.type;
  const Bytes ranks = recipe_.data_parallel, bytes = buffer.bytes();
  op.bytes = 2 * (bytes / ranks * (ranks - 1) + bytes % ranks * (ranks - 1) / ranks);
  const Tensor* tensors[] = {&buffer};
  tape_.append(op, "c10d::allreduce_", tensors, tensors);
}

void GradientReduction::end() {
  if (!active_) return;
  active_ = false;
  const Phase before = tape_.phase;
  tape_.phase = Phase::backward;
  if (recipe_.gradient_reduction == ReductionSchedule::after_backward)
    reduce_at_once();
  else
    wait_for_reduction();
  tape_.phase = before;
}

void GradientReduction::wait_for_reduction() {
  assert(next_ == buckets_.size());
  hand_over(tape_, stream_, kComputeStream);
  if (recipe_.gradients_as_bucket_views) return;
  for (const auto& bucket : buckets_)
    for (std::size_t i = 0; i < bucket->parameters.size(); ++i)
      kernel_into(tape_, "aten::copy_", OperatorClass::memory, {&bucket->views[i]}, bucket->parameters[i]->gradient);
}

// Megatron-LM, local distributed data parallel: all gradients in one buffer, and back (allreduce_params).
void GradientReduction::reduce_at_once() {
  std::vector<Tensor> flat;
  for (const auto& p : tape_.parameters())
    if (p->gradient) flat.push_back(tape_.view(p->gradient, {p->gradient.elements()}, {1}));
  Tensor buffer = cat(tape_, flat, 0);
  kernel_into(tape_, "aten::div_", OperatorClass::elementwise, {&buffer}, buffer);
  reduce(buffer);
  hand_over(tape_, stream_, kComputeStream);
  for (const auto& p : tape_.parameters()) {
    if (!p->gradient) continue;
    const Tensor part = tape_.view(buffer, p->gradient.shape, p->gradient.strides);
    kernel_into(tape_, "aten::copy_", OperatorClass::memory, {&part}, p->gradient);
  }
}

std::vector<std::size_t> gradient_order(const Model& model, const Recipe& recipe) {
  std::vector<std::size_t> order;
  Tape tape("order of gradients");
  const std::unique_ptr<Network> network = make_network(tape, model, recipe);
  for (std::size_t i = 0; i < tape.parameters().size(); ++i)
    tape.parameters()[i]->accumulated = [&order, i](Parameter&) { order.push_back(i); };
  tape.begin_step("order of gradients");
  Tensor loss;
  {
    const AutocastScope autocast(tape, autocast_type(recipe));
    loss = network->loss();
  }
  tape.backward(loss);
  return order;
}

}  // namespace memwall
