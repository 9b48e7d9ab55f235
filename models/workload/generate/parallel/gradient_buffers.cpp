#include "models/workload/generate/parallel/gradient_buffers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <numeric>

#include "models/workload/generate/operators/operators.h"

namespace memwall {
namespace {

constexpr std::int64_t kParameterAlignment = 64, kBucketAlignment = 128;  // elements
constexpr std::int64_t kLeastBucket = 40'000'000, kBucketPerRank = 1'000'000;
constexpr std::int64_t kDeepSpeedBucket = 500'000'000;  // reduce_bucket_size

std::int64_t rounded_up(std::int64_t n, std::int64_t to) { return (n + to - 1) / to * to; }

Tensor part_of(const Tensor& whole, const Shape& shape) {
  Tensor view = whole.detached();
  view.shape = shape;
  view.strides = contiguous_strides(shape);
  return view;
}

}  // namespace

BufferLayout buffer_layout(const std::vector<std::int64_t>& sizes, const std::vector<bool>& alone, std::int64_t ranks,
                           std::int64_t bucket_size) {
  BufferLayout layout;
  const std::int64_t alignment = std::lcm(ranks, kBucketAlignment);
  std::int64_t at = 0;
  const auto close = [&] {
    if (layout.buckets.empty() || layout.buckets.back().end != 0) return;
    at = rounded_up(at, alignment);
    layout.buckets.back().end = at;
  };
  for (std::size_t i = sizes.size(); i-- > 0;) {
    const bool by_itself = i < alone.size() && alone[i];
    if (by_itself) close();
    if (layout.buckets.empty() || layout.buckets.back().end != 0) layout.buckets.push_back({at, 0, {}, {}, {}});
    at = rounded_up(at, kParameterAlignment);
    BufferLayout::Bucket& bucket = layout.buckets.back();
    bucket.parameters.push_back(i);
    bucket.begins.push_back(at);
    bucket.sizes.push_back(sizes[i]);
    at += sizes[i];
    if (by_itself || (bucket_size > 0 && at - bucket.first >= bucket_size)) close();
  }
  close();
  return layout;
}

GradientBuffers::GradientBuffers(Tape& tape, const ParallelJob& job, std::int64_t rank, Communicator& data,
                                 std::vector<std::vector<Parameter*>> chunks, Communicator& tensor)
    : tape_(tape), job_(job), rank_(rank), data_(data), chunks_(std::move(chunks)) {
  const ModelParallel& p = job.recipe.parallel;
  if (divides_parameters(job.recipe))
    for (const std::vector<Parameter*>& own : chunks_)
      sharded_.push_back(std::make_unique<ShardedParameters>(tape, data, tensor, own));
  is_reduced_.assign(sharded_.size(), false);
  if (updates_each_parameter(job.recipe) && std::ranges::any_of(chunks_.front(), &Parameter::by_tokens))
    by_tokens_ = std::make_unique<TokenGradients>(tensor, chunks_.front());
  buffers_ = p.main_gradients != MainGradients::none;
  if (!buffers_) return;
  kept_ = p.framework == ParallelFramework::deepspeed;
  by_bucket_ = p.overlap_grad_reduce && data.ranks() > 1;
  for (std::size_t chunk = 0; chunk < chunks_.size(); ++chunk)
    make_buffers(static_cast<std::int64_t>(chunk), chunks_[chunk]);
}

void GradientBuffers::make_buffers(std::int64_t chunk, const std::vector<Parameter*>& parameters) {
  std::vector<std::int64_t> sizes;
  std::vector<bool> alone;
  const bool tied = job_.model.tied_embedding && job_.pipeline.ranks > 1;
  for (const Parameter* p : parameters) {
    sizes.push_back(p->value.elements());
    alone.push_back(tied && (p->name == "words.weight" || p->name == "head.weight"));
  }
  const bool cut = by_bucket_ && rank_ == 0 && chunk == 0;
  const BufferLayout layout =
      buffer_layout(sizes, alone, data_.ranks(), cut ? std::max(kLeastBucket, kBucketPerRank * job_.data()) : 0);
  const MainGradients kind = job_.recipe.parallel.main_gradients;
  const bool fused = kind == MainGradients::fp32_fused || kind == MainGradients::bf16_fused;
  const DataType type = kind == MainGradients::bf16_fused ? DataType::bf16 : DataType::fp32;
  for (const BufferLayout::Bucket& from : layout.buckets) {
    Bucket bucket;
    bucket.chunk = chunk;
    bucket.buffer = tape_.permanent(fmt::format("gradients of chunk {}, bucket {}", chunk, buckets_.size()),
                                    {from.end - from.first}, type, StorageKind::gradient);
    const std::size_t number = buckets_.size();
    for (const std::size_t i : from.parameters) {
      Parameter* p = parameters[i];
      bucket.parameters.push_back(p);
      p->main_gradient = part_of(bucket.buffer, p->value.shape);
      p->products_add_up = fused;
      p->accumulated = [this, number](Parameter& parameter) { arrived(parameter, number); };
    }
    buckets_.push_back(std::move(bucket));
  }
}

void GradientBuffers::begin_step() {
  for (Bucket& bucket : buckets_) {
    kernel_into(tape_, "aten::zero_", OperatorClass::memory, {}, bucket.buffer);
    bucket.started = false;
  }
}

void GradientBuffers::begin_pass(std::int64_t chunk, bool last) {
  active_chunk_ = chunk;
  last_ = last;
  if (is_sharded()) sharded(chunk).begin_pass();
  if (by_tokens_) by_tokens_->begin_pass();
  for (Bucket& bucket : buckets_)
    if (bucket.chunk == chunk) bucket.pending = bucket.parameters.size();
  if (!kept_) return;
  tape_.phase = Phase::backward;
  for (Parameter* p : chunks_[static_cast<std::size_t>(chunk)])
    if (p->gradient) kernel_into(tape_, "aten::zero_", OperatorClass::memory, {}, p->gradient);
}

// What no product has added to the buffer, a kernel does (param.main_grad.add_(param.grad)).
void GradientBuffers::arrived(Parameter& parameter, std::size_t number) {
  if (parameter.gradient) {
    Tensor gradient = parameter.gradient;
    if (!kept_) parameter.gradient.reset();
    tape_.trace().storages[gradient.storage->id()].kind = kept_ ? StorageKind::gradient : StorageKind::workspace;
    // BF16_Optimizer.update_hp_grads: hp_grad.data.add_(lp.grad.data.to(hp_grad.dtype)), behind the pass, one after the
    // other; here as each comes.
    if (kept_) gradient = cast(tape_, gradient, parameter.main_gradient.type);
    kernel_into(tape_, "aten::add_", OperatorClass::elementwise, {&gradient, &parameter.main_gradient},
                parameter.main_gradient);
  }
  Bucket& bucket = buckets_[number];
  assert(bucket.pending > 0);
  --bucket.pending;
  // Only the first rank of a plain pipeline reduces from within backward (align_grad_reduce).
  const bool at_once = by_bucket_ && last_ && rank_ == 0 && job_.pipeline.chunks == 1;
  if (at_once && bucket.pending == 0) reduce(bucket);
}

void GradientBuffers::reduce(Bucket& bucket) {
  if (bucket.started || data_.ranks() == 1) return;
  bucket.started = true;
  kernel_into(tape_, "aten::mul_", OperatorClass::elementwise, {&bucket.buffer}, bucket.buffer);
  // BF16_Optimizer sums all of them on each rank (buffered_allreduce_fallback).
  const bool scatter = job_.recipe.parallel.distributed_optimizer && !kept_;
  const Tensor* const one[] = {&bucket.buffer};
  data_.start({scatter ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce,
               scatter ? "c10d::_reduce_scatter_base_" : "c10d::allreduce_", bucket.buffer.bytes(), bucket.buffer.type},
              one, one);
}

void GradientBuffers::set_shares(const Tensor& shares) {
  for (const auto& own : sharded_) own->set_shares(shares);
}

void GradientBuffers::start(std::int64_t chunk) {
  if (is_sharded() && !is_reduced_[static_cast<std::size_t>(chunk)]) {
    is_reduced_[static_cast<std::size_t>(chunk)] = true;
    sharded(chunk).reduce();
  }
  if (!by_bucket_) return;
  for (Bucket& bucket : buckets_)
    if (bucket.chunk == chunk) reduce(bucket);
}

void GradientBuffers::finish() {
  const ModelParallel& p = job_.recipe.parallel;
  if (p.framework == ParallelFramework::deepspeed && p.distributed_optimizer && !buffers_ && !is_sharded())
    return reduce_into_partition();
  if (data_.ranks() == 1) return;
  if (is_sharded()) {
    for (std::size_t chunk = 0; chunk < sharded_.size(); ++chunk) start(static_cast<std::int64_t>(chunk));
    return;
  }
  if (!buffers_) return reduce_own_gradients();
  for (Bucket& bucket : buckets_) reduce(bucket);
  data_.wait();
}

// All gradients, or as many as a bucket of DeepSpeed takes, in one tensor, reduced, and back.
void GradientBuffers::reduce_own_gradients() {
  std::vector<Parameter*> all;
  for (const auto& chunk : chunks_)
    for (Parameter* p : chunk)
      if (p->gradient) all.push_back(p);
  const bool deepspeed = job_.recipe.parallel.framework == ParallelFramework::deepspeed;
  for (std::size_t from = 0; from < all.size();) {
    std::vector<Tensor> flat;
    std::size_t to = from;
    for (std::int64_t elements = 0; to < all.size() && (!deepspeed || elements < kDeepSpeedBucket); ++to) {
      elements += all[to]->gradient.elements();
      flat.push_back(tape_.view(all[to]->gradient, {all[to]->gradient.elements()}, {1}));
    }
    const Tensor buffer = cat(tape_, flat, 0);
    kernel_into(tape_, "aten::div_", OperatorClass::elementwise, {&buffer}, buffer);
    data_.all_reduce(buffer);
    for (; from < to; ++from) {
      const Tensor part = part_of(buffer, all[from]->gradient.shape);
      kernel_into(tape_, "aten::copy_", OperatorClass::memory, {&part}, all[from]->gradient);
    }
  }
}

// DeepSpeed's stage 1 under a pipeline (deepspeed/runtime/zero/stage_1_and_2.py, reduce_gradients): gradients are
// copied one by one into a buffer as large as a bucket, which is summed where the next finds no room; what a rank
// updates is copied from there into one tensor. A gradient larger than the bucket is summed where it lies.
void GradientBuffers::reduce_into_partition() {
  std::vector<Parameter*> all;
  for (const auto& chunk : chunks_)
    for (Parameter* p : chunk)
      if (p->gradient) all.push_back(p);
  if (all.empty()) return;
  const DataType type = all.front()->gradient.type;
  const std::int64_t share = elements() / data_.ranks();
  std::int64_t own = 0, seen = 0;  // elements of the parameters that the first rank's part touches, as all ranks' count
  for (const Parameter* p : all) {
    if (seen < share) own += p->gradient.elements();
    seen += p->gradient.elements();
  }
  const Tensor bucket = tape_.make("deepspeed::ipg_buffer", {kDeepSpeedBucket}, type);
  tape_.trace().storages[bucket.storage->id()].kind = StorageKind::communication_buffer;
  Tensor partition;
  std::vector<Parameter*> members;
  std::int64_t filled = 0;
  seen = 0;
  const auto copy_into = [&](Parameter& p, const Tensor& whole) {
    const Tensor part = part_of(whole, p.gradient.shape);
    kernel_into(tape_, "aten::copy_", OperatorClass::memory, {&p.gradient}, part);
    p.gradient = part;
  };
  const auto sum = [&](const Tensor& buffer) {
    kernel_into(tape_, "aten::div_", OperatorClass::elementwise, {&buffer}, buffer);
    if (data_.ranks() > 1) data_.all_reduce(buffer);
  };
  const auto keep_own = [&](Parameter& p) {
    const bool is_own = seen < share;
    seen += p.gradient.elements();
    if (!is_own) return;
    if (!partition) {
      partition = tape_.make("deepspeed::grads_in_partition", {own}, type);
      tape_.trace().storages[partition.storage->id()].kind = StorageKind::gradient;
    }
    copy_into(p, partition);
  };
  const auto flush = [&] {
    if (members.empty()) return;
    sum(part_of(bucket, {filled}));
    for (Parameter* p : members) keep_own(*p);
    members.clear();
    filled = 0;
  };
  for (Parameter* p : all) {
    const std::int64_t elements = p->gradient.elements();
    if (filled + elements > kDeepSpeedBucket) flush();
    if (elements > kDeepSpeedBucket) {
      sum(p->gradient);
      keep_own(*p);
      continue;
    }
    copy_into(*p, bucket);
    filled += elements;
    members.push_back(p);
  }
  flush();
}

std::vector<GradientBuffers::Reduced> GradientBuffers::reduced() const {
  std::vector<Reduced> all;
  for (const Bucket& bucket : buckets_) all.push_back({bucket.chunk, bucket.parameters});
  return all;
}

std::int64_t GradientBuffers::elements() const {
  std::int64_t sum = 0;
  for (const auto& own : sharded_) sum += own->elements();
  if (is_sharded()) return sum;
  for (const Bucket& bucket : buckets_) sum += bucket.buffer.elements();
  if (buffers_) return sum;
  for (const auto& chunk : chunks_)
    for (const Parameter* p : chunk) sum += p->value.elements();
  return rounded_up(sum, data_.ranks());
}

Tensors GradientBuffers::for_update() const {
  Tensors list;
  for (const auto& own : sharded_)
    for (Tensor& gradient : own->gradients()) list.push_back(std::move(gradient));
  if (is_sharded()) return list;
  const std::int64_t parts = job_.recipe.parallel.distributed_optimizer ? data_.ranks() : 1;
  for (const Bucket& bucket : buckets_) list.push_back(part_of(bucket.buffer, {bucket.buffer.elements() / parts}));
  if (buffers_) return list;
  for (const auto& chunk : chunks_)
    for (const Parameter* p : chunk)
      if (p->gradient) list.push_back(p->gradient);
  return list;
}

}  // namespace memwall
