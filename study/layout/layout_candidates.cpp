#include "study/layout/layout_candidates.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "models/workload/generate/configuration/model_size.h"
#include "sim/error.h"
#include "sim/machine/gpu_place.h"

namespace memwall {
namespace {

constexpr std::int64_t kLargestMicroBatch = 16;

std::vector<std::int64_t> divisors(std::int64_t n, std::int64_t most) {
  std::vector<std::int64_t> all;
  for (std::int64_t i = 1; i <= std::min(n, most); ++i)
    if (n % i == 0) all.push_back(i);
  return all;
}

class Candidates {
 public:
  explicit Candidates(const LayoutRequest& request) : request_(request), base_(request.job.recipe) {}

  LayoutCandidates all() {
    const std::uint32_t node = GpuPlaces(*request_.machine).node_size();
    const std::int64_t gpus = request_.gpus, most = node > 0 ? node : gpus;
    for (const std::int64_t tensor : choices("tensor", base_.parallel.tensor, divisors(gpus, most)))
      for (const std::int64_t pipeline :
           choices("pipeline", base_.parallel.pipeline, divisors(gpus / tensor, request_.job.model.layers)))
        if (gpus % (tensor * pipeline) == 0) with_ranks(tensor, pipeline, gpus / (tensor * pipeline));
    return std::move(found_);
  }

 private:
  bool is_fixed(const char* setting) const {
    return std::find(request_.fixed.begin(), request_.fixed.end(), setting) != request_.fixed.end();
  }
  std::vector<std::int64_t> choices(const char* setting, std::int64_t said, std::vector<std::int64_t> all) const {
    return is_fixed(setting) ? std::vector{said} : all;
  }

  void with_ranks(std::int64_t tensor, std::int64_t pipeline, std::int64_t data) {
    if (is_fixed("data_parallel") && base_.data_parallel != data) return;
    if (request_.global_batch % data != 0) return;
    const std::int64_t batch = request_.global_batch / data;
    for (const std::int64_t micro : choices("micro_batch", base_.parallel.micro_batch, divisors(batch, kLargestMicroBatch)))
      for (const std::int64_t chunks :
           choices("interleave", base_.parallel.interleave, divisors(counted_layers(pipeline) / pipeline, 1000)))
        for (const ActivationCheckpoint again : recomputation()) {
          if (batch % micro != 0) continue;
          if (chunks > 1 && (pipeline == 1 || batch / micro % pipeline != 0)) continue;
          add(tensor, pipeline, data, micro, chunks, again);
        }
  }

  bool are_stages_said() const {
    const ModelParallel& p = base_.parallel;
    return p.first_stage_layers != 0 || p.last_stage_layers != 0 || !p.stage_layout.empty() || p.embedding_in_split ||
           p.loss_in_split;
  }
  // Where the layers do not divide, embedding and loss may count as a layer each (Llama 3 405B: 126 layers on 16 GPUs).
  bool counts_ends(std::int64_t pipeline) const {
    const std::int64_t layers = request_.job.model.layers;
    return !are_stages_said() && layers % pipeline != 0 && (layers + 2) % pipeline == 0;
  }
  std::int64_t counted_layers(std::int64_t pipeline) const {
    return request_.job.model.layers + (counts_ends(pipeline) ? 2 : 0);
  }

  std::vector<ActivationCheckpoint> recomputation() const {
    if (is_fixed("checkpoint")) return {base_.checkpoint};
    std::vector<ActivationCheckpoint> all{ActivationCheckpoint::none, ActivationCheckpoint::full};
    if (base_.attention == Attention::plain) all.insert(all.begin() + 1, ActivationCheckpoint::selective);
    return all;
  }

  void add(std::int64_t tensor, std::int64_t pipeline, std::int64_t data, std::int64_t micro, std::int64_t chunks,
           ActivationCheckpoint again) {
    Recipe r = base_;
    ModelParallel& p = r.parallel;
    p.tensor = tensor, p.pipeline = pipeline, p.interleave = chunks, p.micro_batch = micro;
    p.global_batch = request_.global_batch;
    if (counts_ends(pipeline)) p.embedding_in_split = p.loss_in_split = true;
    r.data_parallel = static_cast<std::uint32_t>(data);
    r.batch = request_.global_batch / data;
    r.accumulation = 1;
    r.checkpoint = again;
    if (!is_fixed("sequence_parallel")) p.sequence_parallel = tensor > 1;
    const bool megatron = p.framework == ParallelFramework::megatron;
    if (!is_fixed("distributed_optimizer")) p.distributed_optimizer = data > 1 && megatron;
    if (!is_fixed("overlap_grad_reduce")) p.overlap_grad_reduce = data > 1 && megatron;
    if (!is_fixed("overlap_param_gather")) p.overlap_param_gather = p.distributed_optimizer && megatron;
    // What makes a job of one GPU one of Megatron-LM's, too.
    const bool bf16 = r.precision == Precision::bf16 || r.precision == Precision::fp8_transformer_engine;
    if (p.main_gradients == MainGradients::automatic && megatron && bf16)
      p.main_gradients = MainGradients::fp32_fused;
    // torchtitan's replicas without a pipeline are a policy's, whose job is that of one.
    const bool by_policy =
        p.framework == ParallelFramework::torchtitan && pipeline == 1 && data > 1 && !is_fixed("data_parallel");
    if (by_policy) p.global_batch /= data, r.data_parallel = 1;
    try {
      found_.jobs.push_back({parallel_job(request_.job.model, r), by_policy ? static_cast<std::uint32_t>(data) : 1});
    } catch (const UsageError& error) {
      found_.refused.add(error.what());
    }
  }

  const LayoutRequest& request_;
  const Recipe& base_;
  LayoutCandidates found_;
};

}  // namespace

LayoutCandidates layout_candidates(const LayoutRequest& request) { return Candidates(request).all(); }

Bytes state_bytes(const LayoutCandidate& candidate) {
  const ParallelJob& job = candidate.job;
  Model one = job.model, two = job.model;
  one.layers = 1, two.layers = 2;
  const double layer = approximate_parameter_count(two) - approximate_parameter_count(one);
  const double table = static_cast<double>(job.model.vocabulary * job.model.width);
  const Recipe& r = job.recipe;
  const ModelParallel& p = r.parallel;
  // In fp8 a weight is there twice, a byte each, where its transpose is kept.
  const double low = r.fp8_parameters && !r.fp8_weight_cache ? 1 : 2, weight = r.precision == Precision::fp32 ? 4 : low;
  const bool frozen = r.lora_rank != 0;  // all that counts
  const double buffer = p.main_gradients == MainGradients::bf16_fused ? 2 : 4;
  const double gradient = frozen ? 0 : p.main_gradients == MainGradients::none ? weight : buffer;
  const double moments = frozen ? 0 : r.precision == Precision::fp32 ? 8.0 : 12.0;
  const double states = moments / (p.distributed_optimizer ? static_cast<double>(job.data()) : 1.0);
  double most = 0;
  for (std::int64_t rank = 0; rank < job.pipeline.ranks; ++rank) {
    double parameters = 0;
    for (std::int64_t c = 0; c < job.pipeline.chunks; ++c) {
      const StageLayers& s = job.stages[static_cast<std::size_t>(c * job.pipeline.ranks + rank)];
      const bool tied_here = s.embedding && s.loss && job.model.tied_embedding;
      parameters += static_cast<double>(s.count) * layer + (s.embedding ? table : 0) + (s.loss && !tied_here ? table : 0);
    }
    most = std::max(most, parameters / static_cast<double>(p.tensor));
  }
  // FSDP2's shares: gradients are there in backward alone.
  if (candidate.replicas > 1) return static_cast<Bytes>(most * moments / candidate.replicas);
  // Under a pipeline what was gathered stays, and gradients come while activations go.
  if (divides_parameters(r)) return static_cast<Bytes>(most * (weight + 12.0 / static_cast<double>(job.data())));
  return static_cast<Bytes>(most * (weight + gradient + states));
}

}  // namespace memwall
