#include "models/workload/generate/parallel/deferred_gather.h"

#include <algorithm>

#include "models/workload/generate/parallel/sharded_parameters.h"

namespace memwall {

DeferredGather::DeferredGather(Tape& tape, const ParallelJob& job, std::int64_t rank, Communicator& data,
                               const GradientBuffers& gradients)
    : tape_(tape), job_(job), rank_(rank), data_(data) {
  for (const GradientBuffers::Reduced& bucket : gradients.reduced())
    buckets_.push_back({bucket.chunk, bucket.parameters});
  std::reverse(buckets_.begin(), buckets_.end());  // gradients come in reverse
  std::stable_sort(buckets_.begin(), buckets_.end(),
                   [](const Bucket& a, const Bucket& b) { return a.chunk < b.chunk; });
}

void DeferredGather::begin_step() {
  active_ = job_.recipe.parallel.overlap_param_gather && data_.ranks() > 1;
  if (!active_ || buckets_.empty()) return;
  if (job_.pipeline.chunks == 1) return start(buckets_.front());
  start_chunk(0);
  start_chunk(1);
}

// align_param_gather: a rank is as many passes behind the first as its place in the pipeline.
void DeferredGather::begin_forward(std::size_t number, const std::vector<PipelinePass>& order) {
  const std::size_t first_rank = number + static_cast<std::size_t>(rank_);
  if (!active_ || job_.pipeline.chunks == 1 || first_rank >= order.size()) return;
  const PipelinePass& pass = order[first_rank];
  if (pass.microbatch == 0 && pass.chunk > 0) start_chunk(pass.chunk + 1);
}

void DeferredGather::start(Bucket& bucket) {
  if (bucket.started) return;
  bucket.started = true;
  Tensors values;
  Bytes bytes = 0;
  for (const Parameter* p : bucket.parameters) {
    values.push_back(p->value.detached());
    bytes += values.back().bytes();
  }
  std::vector<const Tensor*> all;
  for (const Tensor& value : values) all.push_back(&value);
  data_.start({CollectiveKind::all_gather, "c10d::_allgather_base_", bytes, values.front().type}, all, all);
  Op op;
  op.kind = OpKind::event_record;
  op.target = bucket.event = tape_.builder().add_event();
  op.stream = data_.stream();
  tape_.append(op, "", {}, {});
}

void DeferredGather::start_chunk(std::int64_t chunk) {
  for (Bucket& bucket : buckets_)
    if (bucket.chunk == chunk) start(bucket);
}

// Behind the wait the next one starts, where nobody has started it.
void DeferredGather::wait(std::size_t at) {
  Bucket& bucket = buckets_[at];
  if (bucket.waited) return;
  start(bucket);
  bucket.waited = true;
  Op op;
  op.kind = OpKind::event_wait;
  op.target = bucket.event;
  op.stream = 0;
  tape_.append(op, "", {}, {});
  if (job_.pipeline.chunks == 1 && at + 1 < buckets_.size()) start(buckets_[at + 1]);
}

void DeferredGather::about_to_run(std::int64_t chunk, std::int64_t part) {
  if (!active_) return;
  const auto is_of_part = [part](const Parameter* p) { return part_of_model(p->name) == part; };
  for (std::size_t i = 0; i < buckets_.size(); ++i)
    if (buckets_[i].chunk == chunk && !buckets_[i].waited &&
        std::any_of(buckets_[i].parameters.begin(), buckets_[i].parameters.end(), is_of_part))
      wait(i);
}

void DeferredGather::about_to_run(std::int64_t chunk) {
  if (!active_) return;
  for (std::size_t i = 0; i < buckets_.size(); ++i)
    if (buckets_[i].chunk == chunk) wait(i);
}

}  // namespace memwall
