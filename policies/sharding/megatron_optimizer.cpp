// Megatron-LM's distributed optimizer: whole weights and whole fp32 gradient buffers on every rank, master weights and
// moments split. Bytes per parameter: 6 + 12/d of bf16 weights with fp32 gradients, 4 + 12/d with bf16 gradients, 8 +
// 8/d of fp32 weights. A step reduce-scatters each bucket once, whatever the number of micro-batches, and gathers each
// once.
//
// Gradients add up in buffers that are set to zero at the beginning of a step: matrix products do so themselves
// (gradient_accumulation_fusion), what others make is added by a kernel. With overlap_grad_reduce a bucket is scaled
// and reduced in the last micro-batch once all of it is there, else behind it in one piece; with overlap_param_gather
// the updated weights are gathered in the next forward, the last bucket (of the first layers) at once and each further
// one when the one before has been waited for. Then norm over all ranks, clip, update, cast. One rank is simulated.
// Source: NVIDIA/Megatron-LM, revision d98e8a64, megatron/core/distributed/ and
// megatron/core/optimizer/distrib_optimizer.py.
#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "policies/sharding/deepspeed_layout.h"
#include "policies/sharding/deepspeed_program.h"
#include "policies/sharding/deepspeed_update.h"
#include "policies/sharding/deepspeed_whole_gradients.h"
#include "policies/sharding/gradient_hooks.h"
#include "policies/sharding/megatron_optimizer_buffer.h"
#include "policies/sharding/zero_analysis.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/policy/registry.h"

namespace memwall {
namespace {

constexpr const char* kPrefix = "megatron_optimizer";

struct MegatronSettings {
  std::uint32_t ranks = 2;
  bool overlap_grad_reduce = false, overlap_param_gather = false;
  bool accumulation_fusion = true, average_in_collective = false, high_bandwidth = false;
  bool reduce_in_bf16 = false;
  std::int64_t bucket_size = 0;  // elements
};

[[noreturn]] void refuse_megatron(const std::string& sentence) {
  throw UsageError("Policy '" + std::string(kPrefix) + "': " + sentence);
}

MegatronSettings megatron_settings(const PolicyArguments& a) {
  MegatronSettings s;
  s.ranks = static_cast<std::uint32_t>(a.integer("ranks"));
  s.overlap_grad_reduce = a.flag("overlap_grad_reduce");
  s.overlap_param_gather = a.flag("overlap_param_gather");
  s.accumulation_fusion = a.flag("gradient_accumulation_fusion");
  s.average_in_collective = a.flag("ddp_average_in_collective");
  s.high_bandwidth = a.flag("ddp_pad_buckets_for_high_nccl_busbw");
  s.reduce_in_bf16 = a.flag("grad_reduce_in_bf16");
  s.bucket_size =
      a.integer_or("ddp_bucket_size", std::max<std::int64_t>(40'000'000, 1'000'000 * std::int64_t{s.ranks}));
  if (s.overlap_param_gather && !s.overlap_grad_reduce)
    refuse_megatron("overlap_param_gather needs overlap_grad_reduce.");
  return s;
}

class MegatronOptimizer {
 public:
  MegatronOptimizer(DeepSpeedProgram& program, const Dataflow& flow, const ZeroAnalysis& analysis, const Pricer& pricer,
                    const MegatronSettings& settings)
      : p_(program),
        edit_(program.edit()),
        t_(program.base()),
        flow_(flow),
        analysis_(analysis),
        pricer_(pricer),
        settings_(settings),
        parameter_of_(parameters_of_gradients(t_, flow, analysis.gradients, analysis.trained)),
        whole_(edit_, flow, analysis) {
    lay_out();
  }

  void run() {
    whole_.drop_base();
    std::vector<const BackwardPass*> step;
    std::vector<std::pair<OpId, OpId>> steps;  // first op of forward, last of backward
    for (const BackwardPass& pass : analysis_.passes) {
      if (step.empty()) begin_step(pass);
      step.push_back(&pass);
      accumulate(pass);
      if (!pass.before_update) continue;
      reduce(pass);
      steps.emplace_back(step.front()->pass.begin, pass.last_backward);
      step.clear();
    }
    whole_.finish();
    const bool is_half = element_ == 2;
    DeepSpeedUpdate update(p_, flow_, analysis_, pricer_, elements_, shard_, is_half);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      update_weights(update, steps[i].second, i + 1 < steps.size() ? steps[i + 1].second : kNoOp);
      if (settings_.overlap_param_gather) gather_in_forward(steps[i].first, steps[i].second);
    }
  }

  std::int64_t shard() const { return shard_; }
  std::size_t buckets() const { return buckets_.size(); }

 private:
  struct Bucket {
    Storages parameters;
    std::int64_t elements = 0;
    StorageId gradients = kNoStorage;
    std::size_t left = 0;  // gradients of the pass that are not there yet
  };

  void lay_out() {
    const std::map<StorageId, Bytes> sizes = element_sizes(t_, flow_, analysis_.trained);
    std::vector<std::int64_t> counts;
    for (const StorageId id : analysis_.trained) {
      element_ = std::max(element_, sizes.at(id));
      counts.push_back(t_.storages[id].bytes / sizes.at(id));
      elements_ += counts.back();
    }
    gradient_element_ = settings_.reduce_in_bf16 && element_ == 2 ? 2 : 4;
    const std::int64_t size = settings_.overlap_grad_reduce ? settings_.bucket_size : 0;
    for (const MegatronBucket& one : megatron_buckets(counts, settings_.ranks, size, settings_.high_bandwidth)) {
      Bucket bucket;
      bucket.elements = one.end - one.begin;
      shard_ += bucket.elements / settings_.ranks;
      for (const std::size_t i : one.parameters) {
        bucket.parameters.push_back(analysis_.trained[i]);
        bucket_of_[analysis_.trained[i]] = buckets_.size();
      }
      const StorageId last = bucket.parameters.back();  // weights stand in an equal buffer
      std::int64_t used = 0;
      for (const std::size_t i : one.parameters) used += counts[i];
      edit_.resize(last, edit_.tables().storages[last].bytes + (bucket.elements - used) * sizes.at(last));
      bucket.gradients =
          p_.device_storage(bucket.elements * gradient_element_, StorageKind::gradient, 0, "gradient_buffer");
      edit_.tables().storages[bucket.gradients].preexisting = true;
      buckets_.push_back(std::move(bucket));
    }
  }

  Bytes gradient_bytes(const Bucket& bucket) const { return bucket.elements * gradient_element_; }

  void begin_step(const BackwardPass& pass) {
    compute_ = 0;
    for (const GradientMade& made : pass.made)
      if (runs_on_device(t_.ops[made.ready].kind)) compute_ = t_.ops[made.ready].stream;
    for (const Bucket& bucket : buckets_)
      p_.kernel({pass.pass.begin, false}, compute_, "zero_gradients", gradient_bytes(bucket), {}, {bucket.gradients});
  }

  Bucket& bucket_of_gradient(StorageId gradient) {
    const auto parameter = parameter_of_.find(gradient);
    return buckets_[parameter == parameter_of_.end() ? 0 : bucket_of_.at(parameter->second)];
  }

  // Is it made by one matrix product alone?
  bool is_fused(const GradientMade& made) const {
    if (!settings_.accumulation_fusion || t_.ops[made.first_write].operator_class != OperatorClass::gemm) return false;
    for (const Touch& touch : flow_.touches(made.gradient))
      if (touch.op > made.first_write && touch.op <= made.ready) return false;
    return true;
  }

  void accumulate(const BackwardPass& pass) {
    BackwardPass apart = pass;
    std::erase_if(apart.made, [this](const GradientMade& made) { return is_fused(made); });
    whole_.forget();
    whole_.make(apart);
    for (Bucket& bucket : buckets_) bucket.left = 0;
    for (const GradientMade& made : pass.made) ++bucket_of_gradient(made.gradient).left;
    events_.clear();
    for (const GradientMade& made : pass.made) {
      Bucket& bucket = bucket_of_gradient(made.gradient);
      const InsertionPoint point{made.ready, true};
      if (is_fused(made))
        fuse(made, bucket);
      else
        add(point, made, bucket);
      if (--bucket.left == 0 && pass.before_update && settings_.overlap_grad_reduce) start_reduction(point, bucket);
    }
  }

  // The product reads and writes the buffer, where it wrote a gradient of the weights' type.
  void fuse(const GradientMade& made, const Bucket& bucket) {
    const Op& old = t_.ops[made.first_write];
    std::vector<Use> uses{{bucket.gradients, TraceBuilder::kLatest, Access::read}};
    for (Use use : t_.uses_of(old)) {
      if (use.storage == made.gradient && use.access == Access::read) continue;
      if (use.storage == made.gradient) use.storage = bucket.gradients;
      uses.push_back(use);
    }
    const Bytes elements = t_.storages[made.gradient].bytes / element_;
    Op op = old;
    op.bytes += elements * (2 * gradient_element_ - element_);
    op.duration = pricer_.scaled(old, op.bytes, op.flops);
    edit_.replace(made.first_write, op, uses);
  }

  void add(InsertionPoint point, const GradientMade& made, const Bucket& bucket) {
    const StorageId whole = whole_.all().at(made.gradient);
    const Bytes elements = t_.storages[made.gradient].bytes / element_;
    p_.kernel(point, compute_, "add_to_buffer", elements * (element_ + 2 * gradient_element_),
              {whole, bucket.gradients}, {bucket.gradients});
    edit_.free(point, whole);
  }

  void start_reduction(InsertionPoint point, const Bucket& bucket) {
    if (!settings_.average_in_collective)
      p_.kernel(point, compute_, "scale", 2 * gradient_bytes(bucket), {bucket.gradients}, {bucket.gradients});
    events_[bucket.gradients] = p_.start_collective(point, compute_, CollectiveKind::reduce_scatter,
                                                    gradient_bytes(bucket), {bucket.gradients}, {bucket.gradients});
  }

  void reduce(const BackwardPass& pass) {
    const InsertionPoint end{pass.last_backward, true};
    for (const Bucket& bucket : buckets_)
      if (!events_.contains(bucket.gradients)) start_reduction(end, bucket);
    for (const Bucket& bucket : buckets_) edit_.wait(end, events_.at(bucket.gradients), compute_);
  }

  Storages gradient_buffers() const {
    Storages all;
    for (const Bucket& bucket : buckets_) all.push_back(bucket.gradients);
    return all;
  }

  void update_weights(DeepSpeedUpdate& update, OpId last_backward, OpId next_backward) {
    const StepPlace place = update.take_out(last_backward, next_backward, kNoStorage);
    constexpr Bytes kNorm = 4;
    const StorageId norm = p_.device_storage(kNorm, StorageKind::workspace, place.stream, "gradient_norm");
    const Bytes own = shard_ * gradient_element_;
    StorageId gradients = buckets_.front().gradients;
    edit_.alloc(place.begin, norm);
    p_.kernel(place.begin, place.stream, "norm", own, gradient_buffers(), {norm});
    p_.collective(place.begin, place.stream, CollectiveKind::all_reduce, kNorm, {norm}, {norm});
    edit_.free(place.begin, norm);
    const bool widens = gradient_element_ == 2;
    if (widens) {
      gradients = p_.device_storage(4 * shard_, StorageKind::gradient, place.stream, "fp32_shard");
      edit_.alloc(place.end, gradients);
      p_.kernel(place.end, place.stream, "cast_to_fp32", own + 4 * shard_, gradient_buffers(), {gradients});
    }
    p_.kernel(place.end, place.stream, "clip", 8 * shard_, {gradients}, {gradients});
    update.on_device(place.end, place.stream, elements_ > 0 ? shard_ : 0, gradients);
    if (widens) edit_.free(place.end, gradients);
    if (element_ == 2)  // weights of 32 bit are their own master copy
      p_.kernel(place.end, place.stream, "cast", shard_ * (4 + element_), update.states(), analysis_.trained);
    if (settings_.overlap_param_gather) return;
    for (const Bucket& bucket : buckets_)
      p_.collective(place.end, place.stream, CollectiveKind::all_gather, bucket.elements * element_, bucket.parameters,
                    bucket.parameters);
  }

  // The first op in [begin, end] that uses a parameter of the bucket.
  OpId first_use(const Bucket& bucket, OpId begin, OpId end) const {
    OpId first = kNoOp;
    for (const StorageId id : bucket.parameters)
      for (const Touch& touch : flow_.touches(id))
        if (touch.op >= begin && touch.op <= end) {
          first = std::min(first, touch.op);
          break;
        }
    return first;
  }

  void gather_in_forward(OpId begin, OpId end) {
    std::vector<std::pair<OpId, std::size_t>> order;  // of the buckets' first uses
    for (std::size_t b = 0; b < buckets_.size(); ++b)
      order.emplace_back(std::min(first_use(buckets_[b], begin, end), end), b);
    std::ranges::sort(order);
    std::vector<std::optional<std::uint32_t>> events(buckets_.size());
    const auto dispatch = [&](InsertionPoint point, std::size_t b) {
      if (events[b]) return;
      events[b] = p_.start_collective(point, compute_, CollectiveKind::all_gather, buckets_[b].elements * element_,
                                      buckets_[b].parameters, buckets_[b].parameters);
    };
    dispatch({begin, false}, buckets_.size() - 1);
    for (const auto& [op, b] : order) {
      const InsertionPoint point{op, false};
      dispatch(point, b);
      edit_.wait(point, *events[b], compute_);
      if (b > 0) dispatch(point, b - 1);
    }
  }

  DeepSpeedProgram& p_;
  TraceEdit& edit_;
  const Trace& t_;
  const Dataflow& flow_;
  const ZeroAnalysis& analysis_;
  const Pricer& pricer_;
  const MegatronSettings& settings_;
  const std::map<StorageId, StorageId> parameter_of_;
  WholeGradients whole_;
  std::vector<Bucket> buckets_;
  std::map<StorageId, std::size_t> bucket_of_;  // by parameter
  std::map<StorageId, std::uint32_t> events_;   // by buffer: behind its reduction
  Bytes element_ = 2, gradient_element_ = 4;    // of weights and of gradients in the buffer
  std::int64_t elements_ = 0, shard_ = 0;
  std::uint16_t compute_ = 0;
};

class MegatronOptimizerPolicy : public Rewriter {
 public:
  explicit MegatronOptimizerPolicy(const PolicyArguments& arguments) : settings_(megatron_settings(arguments)) {}

  Trace rewrite(const Trace& trace, const Machine& machine, const Pricer& pricer) const override {
    if (machine.fabric(settings_.ranks) == nullptr)
      refuse_megatron("machine '" + machine.name + "' does not connect ranks=" + std::to_string(settings_.ranks) + ".");
    const Dataflow flow(trace);
    const ZeroAnalysis analysis = analyze_for_zero(trace, flow, 1, kPrefix);
    refuse_zeroed_gradients(trace, flow, analysis, kPrefix);
    TraceEdit edit(trace, machine.host);
    DeepSpeedProgram program(edit, machine, pricer, settings_.ranks, Duration{}, kPrefix);
    memwall::take_out(edit, flow, analysis.replaced);
    MegatronOptimizer optimizer(program, flow, analysis, pricer, settings_);
    optimizer.run();
    edit.tables().ranks = settings_.ranks;
    edit.tables().notes.push_back(fmt::format("{}: over {} ranks, {}; {} sent per rank for gradients, {} for weights",
                                              kPrefix, settings_.ranks, counted_text(optimizer.buckets(), "bucket"),
                                              human_bytes(program.bytes_sent(CollectiveKind::reduce_scatter)),
                                              human_bytes(program.bytes_sent(CollectiveKind::all_gather))));
    return std::move(edit).apply();
  }

 private:
  MegatronSettings settings_;
};

PolicyAnswer answer_of_megatron_optimizer(const Trace& trace) {
  try {
    analyze_for_zero(trace, Dataflow(trace), 1, kPrefix);
  } catch (const UsageError& error) {
    return {error.what(), {}, {}};
  }
  return {};
}

const RegisterPolicy registered_megatron_optimizer{
    {.name = kPrefix,
     .sentence = "Megatron-LM's distributed optimizer: optimizer states are split, weights and fp32 gradients are not",
     .kind = PolicyKind::sharding,
     .needs = {.timing = true, .allocations = true, .dataflow = true},
     .ranks = RankRule::each_meeting,
     .parameters = {integer("ranks", kRequired, {2, 1 << 20}, "ranks",
                            "that share gradients: data parallel times context parallel"),
                    flag("overlap_grad_reduce", false, "1 = buckets are reduced during the last backward"),
                    flag("overlap_param_gather", false,
                         "1 = updated weights are gathered in the next forward, one bucket ahead"),
                    integer("ddp_bucket_size", Unset{"auto"}, {1, 1e15}, "elements",
                            "with overlap_grad_reduce; by default 40000000, or 1000000 per rank if that is more"),
                    flag("gradient_accumulation_fusion", true, "matrix products add to the gradient buffer themselves"),
                    flag("ddp_average_in_collective", false, "1 = the collective divides, 0 = a kernel does before it"),
                    flag("ddp_pad_buckets_for_high_nccl_busbw", false,
                         "1 = buckets are multiples of 65536 elements, too"),
                    flag("grad_reduce_in_bf16", false, "1 = gradient buffers of 16-bit weights are in 16 bit")},
     .answer = answer_of_megatron_optimizer,
     .make_rewriter = [](const PolicyArguments& arguments) {
       return std::make_unique<MegatronOptimizerPolicy>(arguments);
     }}};

}  // namespace
}  // namespace memwall
