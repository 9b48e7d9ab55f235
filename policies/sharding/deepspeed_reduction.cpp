#include "policies/sharding/deepspeed_reduction.h"

#include <algorithm>
#include <set>

#include "policies/sharding/deepspeed_host_gradients.h"
#include "policies/sharding/deepspeed_uncopied_gradients.h"
#include "policies/sharding/deepspeed_whole_gradients.h"

namespace memwall {
namespace {

// Elements of gradients that the engine all-reduces at once without ZeRO. Source: deepspeed/runtime/engine.py,
// MEMORY_OPT_ALLREDUCE_SIZE.
constexpr std::int64_t kAllReduceElements = 500'000'000;
// Host time of a reduction in that of a hook, as models/hw/calibrate/deepspeed_host.py measures it.
constexpr double kReduceCall = 2.5;

struct BucketGradient {
  StorageId base = kNoStorage, whole = kNoStorage;
  std::int64_t elements = 0, own = 0;
  Bytes element = 2;
  std::vector<ParameterSlice> slices;
  InsertionPoint ready;
  std::uint16_t stream = 0;
  StorageId parameter = kNoStorage;

  Bytes bytes() const { return elements * element; }
};

class BucketReduction {
 public:
  BucketReduction(DeepSpeedProgram& program, const Dataflow& flow, const ZeroAnalysis& analysis,
                  const FlatLayout& layout, const DeepSpeedSettings& settings, ZenFlow& zenflow)
      : p_(program),
        edit_(program.edit()),
        t_(program.base()),
        flow_(flow),
        analysis_(analysis),
        layout_(layout),
        settings_(settings),
        sizes_(element_sizes(t_, flow, analysis.gradients)),
        parameter_of_(parameters_of_gradients(t_, flow, analysis.gradients, analysis.trained)),
        host_(program, layout, settings),
        uncopied_(program, settings),
        zenflow_(zenflow),
        whole_(program.edit(), flow, analysis) {}

  DeepSpeedReduction run() {
    if (settings_.stage > 0) whole_.drop_base();
    for (const BackwardPass& pass : analysis_.passes) {
      made_.push_back(&pass);
      if (settings_.stage == 0) {
        if (pass.before_update) all_reduce(pass);
      } else {
        reduce(pass);
      }
      if (pass.before_update) end_step(pass);
    }
    whole_.finish();
    return std::move(result_);
  }

 private:
  std::uint16_t compute_stream(const BackwardPass& pass) const {
    for (const GradientMade& made : pass.made)
      if (runs_on_device(t_.ops[made.ready].kind)) return t_.ops[made.ready].stream;
    return 0;
  }

  // ---- stage 0 ----

  void all_reduce(const BackwardPass& pass) {
    compute_ = compute_stream(pass);
    std::set<StorageId> gradients;
    for (const BackwardPass* earlier : made_)
      for (const GradientMade& made : earlier->made) gradients.insert(made.gradient);
    Storages bucket;
    Bytes bytes = 0;
    std::int64_t elements = 0;
    const InsertionPoint point{pass.last_backward, true};
    const auto send = [&] {
      if (bucket.empty()) return;
      const StorageId flat = p_.device_storage(bytes, StorageKind::communication_buffer, compute_, "flat_gradients");
      edit_.alloc(point, flat);
      p_.kernel(point, compute_, "flatten", 2 * bytes, bucket, {flat});
      p_.collective(point, compute_, CollectiveKind::all_reduce, bytes, {flat}, {flat});
      p_.kernel(point, compute_, "divide", 2 * bytes, {flat}, {flat});
      p_.kernel(point, compute_, "unflatten", 2 * bytes, {flat}, bucket);
      edit_.free(point, flat);
      ++result_.buckets;
      result_.buffer_bytes = std::max(result_.buffer_bytes, bytes);
      bucket.clear();
      bytes = elements = 0;
    };
    for (const StorageId id : gradients) {
      bucket.push_back(id);
      bytes += t_.storages[id].bytes;
      elements += t_.storages[id].bytes / sizes_.at(id);
      if (elements > kAllReduceElements) send();
    }
    send();
  }

  // ---- stages 1 and 2 ----

  void reduce(const BackwardPass& pass) {
    compute_ = compute_stream(pass);
    reduction_ = settings_.overlap_comm ? edit_.stream("deepspeed.reduction", StreamRole::communication) : compute_;
    // Stage 1 keeps a step's gradients whole over its passes; in stage 2, and with ZenFlow, every pass makes its own.
    if (settings_.stage == 2 || settings_.zenflow.on) whole_.forget();
    zenflow_.begin_pass(number_++, {first_backward(pass), false}, compute_);
    whole_.make(pass);
    std::vector<BucketGradient> ready = gradients_of(pass);
    const InsertionPoint end{pass.last_backward, true};
    if (settings_.stage == 1 && !pass.before_update && !settings_.zenflow.on) {
      // The buffers are there, and nothing is reduced.
      if (!ready.empty()) allocate_buffers(buffers_begin(ready, pass));
      for (const StorageId buffer : buffers_) edit_.free(end, buffer);
      buffers_.clear();
      return;
    }
    const bool behind_backward = settings_.stage == 1 && !settings_.overlap_comm;
    if (behind_backward) {
      std::ranges::stable_sort(ready, {}, [](const BucketGradient& g) { return g.parameter; });
      for (BucketGradient& gradient : ready) gradient.ready = end;
    }
    uncopied_.begin_pass(compute_, reduction_);
    begin(ready, pass);
    for (const BucketGradient& gradient : ready) add(gradient);
    send(end);
    epilogue(end);
  }

  OpId first_backward(const BackwardPass& pass) const {
    OpId id = pass.pass.begin;
    while (id < pass.last_backward && t_.ops[id].phase != Phase::backward) ++id;
    return id;
  }

  std::vector<BucketGradient> gradients_of(const BackwardPass& pass) {
    std::vector<BucketGradient> all;
    std::set<StorageId> seen;
    for (const GradientMade& made : pass.made) {
      seen.insert(made.gradient);
      all.push_back(described(made.gradient, {made.ready, true}, t_.ops[made.ready].stream));
    }
    if (settings_.stage == 1 && pass.before_update)
      for (const auto& [gradient, whole] : whole_.all())
        if (!seen.contains(gradient)) all.push_back(described(gradient, {pass.last_backward, true}, compute_));
    return all;
  }

  BucketGradient described(StorageId base, InsertionPoint ready, std::uint16_t stream) const {
    BucketGradient g;
    g.base = base;
    g.whole = whole_.all().at(base);
    g.element = sizes_.at(base);
    g.elements = t_.storages[base].bytes / g.element;
    g.ready = ready;
    g.stream = stream;
    if (const auto found = parameter_of_.find(base); found != parameter_of_.end()) {
      g.parameter = found->second;
      g.own = layout_.of(found->second).own;
      g.slices = layout_.slices(found->second);
    } else {  // of several parameters: as an even cut leaves it
      g.own = (g.elements + settings_.ranks - 1) / settings_.ranks;
      for (std::uint32_t rank = 0; rank < settings_.ranks; ++rank) g.slices.push_back({rank, g.own});
    }
    return g;
  }

  // backward() of older versions makes the buffers, newer ones do at the first gradient (setup_buckets).
  InsertionPoint buffers_begin(const std::vector<BucketGradient>& ready, const BackwardPass& pass) const {
    return settings_.buckets_before_backward ? InsertionPoint{first_backward(pass), false} : ready.front().ready;
  }

  void begin(const std::vector<BucketGradient>& ready, const BackwardPass& pass) {
    owned_elements_ = 0;
    element_ = 2;
    for (const BucketGradient& gradient : ready) {
      element_ = std::max(element_, gradient.element);
      if (gradient.own > 0) owned_bytes_ += gradient.bytes();
    }
    bucket_elements_ = 0;
    turn_ = 0;
    if (!ready.empty()) allocate_buffers(buffers_begin(ready, pass));
  }

  void allocate_buffers(InsertionPoint point) {
    if (!settings_.contiguous_gradients) return;
    const Bytes bytes = settings_.reduce_bucket_size * element_;
    for (int i = 0; i < (settings_.overlap_comm ? 2 : 1); ++i) {
      buffers_.push_back(p_.device_storage(bytes, StorageKind::communication_buffer, compute_, "ipg_buffer"));
      edit_.alloc(point, buffers_.back());
    }
    result_.buffer_bytes = bytes * static_cast<Bytes>(buffers_.size());
  }

  // A hook of one parameter.
  void add(const BucketGradient& gradient) {
    p_.hook(gradient.ready);
    if (!bucket_.empty() && bucket_elements_ + gradient.elements > settings_.reduce_bucket_size) {
      send(gradient.ready);
      if (settings_.overlap_comm) turn_ = 1 - turn_;
    }
    if (settings_.contiguous_gradients && gradient.elements <= settings_.reduce_bucket_size) {
      p_.wait_stream(gradient.ready, compute_, gradient.stream);
      zenflow_.transpose(gradient.ready, compute_, gradient.parameter, gradient.whole, gradient.bytes());
      p_.kernel(gradient.ready, compute_, "copy_to_bucket", 2 * gradient.bytes(), {gradient.whole}, {buffers_[turn_]});
      edit_.free(gradient.ready, gradient.whole);
    }
    bucket_.push_back(gradient);
    bucket_elements_ += gradient.elements;
  }

  bool is_alone(const BucketGradient& gradient) const { return gradient.elements > settings_.reduce_bucket_size; }

  void send(InsertionPoint point) {
    if (bucket_.empty()) return;
    p_.hook(point, kReduceCall);
    if (!settings_.contiguous_gradients) return send_uncopied(point);
    p_.wait_stream(point, reduction_, compute_);
    p_.wait_stream(point, compute_, reduction_);
    free_reduced(point);
    const StorageId source = is_alone(bucket_.front()) ? bucket_.front().whole : buffers_[turn_];
    const Bytes bytes = bucket_elements_ * bucket_.front().element;
    p_.kernel(point, reduction_, "divide", 2 * bytes, {source}, {source});
    if (!settings_.reduce_scatter)
      p_.collective(point, reduction_, CollectiveKind::all_reduce, bytes, {source}, {source});
    else if (settings_.multi_rank_bucket_allreduce)
      all_reduce_flattened(point, source, bytes);
    else
      reduce_to_owners(point, source);
    zenflow_.update(point, reduction_, parameters_in_bucket(), source, made_.back()->before_update);
    for (const BucketGradient& gradient : bucket_) keep_own(point, gradient, source);
    if (is_alone(bucket_.front())) reduced_.push_back(bucket_.front().whole);
    ++result_.buckets;
    bucket_.clear();
    bucket_elements_ = 0;
  }

  Storages parameters_in_bucket() const {
    Storages parameters;
    for (const BucketGradient& gradient : bucket_)
      if (gradient.parameter != kNoStorage) parameters.push_back(gradient.parameter);
    return parameters;
  }

  void send_uncopied(InsertionPoint point) {
    std::vector<UncopiedGradient> bucket;
    for (const BucketGradient& gradient : bucket_)
      bucket.push_back({gradient.base, gradient.whole, gradient.bytes(), gradient.own > 0, gradient.stream});
    uncopied_.reduce(point, bucket);
    ++result_.buckets;
    bucket_.clear();
    bucket_elements_ = 0;
  }

  // What was reduced uncopied goes once compute has waited for the reduction.
  void free_reduced(InsertionPoint point) {
    for (const StorageId whole : reduced_) edit_.free(point, whole);
    reduced_.clear();
  }

  // One slice needs no flat copy.
  void all_reduce_flattened(InsertionPoint point, StorageId source, Bytes bytes) {
    std::size_t slices = 0;
    std::int64_t own = 0;
    for (const BucketGradient& gradient : bucket_) {
      slices += gradient.slices.size();
      own += gradient.own;
    }
    if (slices == 1) return p_.collective(point, reduction_, CollectiveKind::all_reduce, bytes, {source}, {source});
    const StorageId flat = p_.device_storage(bytes, StorageKind::communication_buffer, reduction_, "flat_bucket");
    edit_.alloc(point, flat);
    p_.kernel(point, reduction_, "flatten", 2 * bytes, {source}, {flat});
    p_.collective(point, reduction_, CollectiveKind::all_reduce, bytes, {flat}, {flat});
    if (own > 0) p_.kernel(point, reduction_, "copy_own_slices", 2 * own * bucket_.front().element, {flat}, {source});
    edit_.free(point, flat);
  }

  // Slices of one owner that follow each other go together.
  void reduce_to_owners(InsertionPoint point, StorageId source) {
    std::vector<std::pair<ParameterSlice, std::size_t>> runs;  // and how many slices each is made of
    for (const BucketGradient& gradient : bucket_)
      for (const ParameterSlice& slice : gradient.slices) {
        if (runs.empty() || runs.back().first.rank != slice.rank) runs.push_back({{slice.rank, 0}, 0});
        runs.back().first.elements += slice.elements;
        ++runs.back().second;
      }
    const std::uint32_t rank = layout_.groups().empty() ? 0 : layout_.groups().front().rank;
    for (const auto& [run, slices] : runs) {
      const Bytes bytes = run.elements * bucket_.front().element;
      if (slices == 1) {
        p_.collective(point, reduction_, CollectiveKind::reduce, bytes, {source}, {source});
        continue;
      }
      const StorageId flat = p_.device_storage(bytes, StorageKind::communication_buffer, reduction_, "flat_slices");
      edit_.alloc(point, flat);
      p_.kernel(point, reduction_, "flatten", 2 * bytes, {source}, {flat});
      p_.collective(point, reduction_, CollectiveKind::reduce, bytes, {flat}, {flat});
      if (run.rank == rank) p_.kernel(point, reduction_, "copy_own_slices", 2 * bytes, {flat}, {source});
      edit_.free(point, flat);
    }
  }

  // Of a parameter that the rank's partition touches, the whole gradient; offloaded, the rank's part.
  void keep_own(InsertionPoint point, const BucketGradient& gradient, StorageId source) {
    if (gradient.own == 0) return;
    if (settings_.offloads_optimizer())
      return host_.take(point, reduction_, source,
                        {told_apart(gradient), gradient.elements, gradient.own, gradient.element}, made_.size() > 1,
                        made_.back()->before_update);
    if (owned_ == kNoStorage) {
      owned_ = p_.device_storage(owned_bytes_, StorageKind::gradient, reduction_, "grads_in_partition");
      edit_.alloc(point, owned_);
      result_.owned_bytes = std::max(result_.owned_bytes, owned_bytes_);
    }
    p_.kernel(point, reduction_, "copy_to_partition", 2 * gradient.bytes(), {source}, {owned_});
  }

  // Steps may make gradients of their own of one parameter.
  static StorageId told_apart(const BucketGradient& gradient) {
    return gradient.parameter == kNoStorage ? gradient.base : gradient.parameter;
  }

  void epilogue(InsertionPoint point) {
    if (!settings_.contiguous_gradients) return uncopied_.end_pass(point);
    if (settings_.overlap_comm) p_.synchronize_device(point);
    free_reduced(point);
    if (owned_ != kNoStorage && !sums_.empty()) {
      Bytes own = 0;
      for (const FlatGroup& group : layout_.groups()) own += group.partition * group.element;
      p_.kernel(point, compute_, "accumulate", 3 * own, {owned_, sums_.front()}, {sums_.front()});
      edit_.free(point, owned_);
    } else if (owned_ != kNoStorage) {
      sums_ = {owned_};
    }
    owned_ = kNoStorage;
    owned_bytes_ = 0;
    for (const StorageId buffer : buffers_) edit_.free(point, buffer);
    buffers_.clear();
  }

  void end_step(const BackwardPass& pass) {
    if (settings_.stage > 0 && !settings_.contiguous_gradients) {
      sums_ = uncopied_.take_own();
      result_.buffer_bytes = uncopied_.largest_buffer();
      result_.owned_bytes = uncopied_.own_bytes();
    }
    result_.steps.push_back(
        {made_.front()->pass.begin, pass.last_backward, sums_, host_.earlier_gradients(), host_.gradients(), compute_});
    host_.next_step();
    sums_.clear();
    whole_.forget();
    made_.clear();
  }

  DeepSpeedProgram& p_;
  TraceEdit& edit_;
  const Trace& t_;
  const Dataflow& flow_;
  const ZeroAnalysis& analysis_;
  const FlatLayout& layout_;
  const DeepSpeedSettings& settings_;
  const std::map<StorageId, Bytes> sizes_;  // of one element, by gradient
  const std::map<StorageId, StorageId> parameter_of_;
  HostGradients host_;
  UncopiedGradients uncopied_;
  ZenFlow& zenflow_;
  std::size_t number_ = 0;                 // of the present pass
  std::vector<const BackwardPass*> made_;  // passes of the step so far
  WholeGradients whole_;
  std::uint16_t compute_ = 0, reduction_ = 0;
  Bytes element_ = 2, owned_bytes_ = 0;
  std::int64_t owned_elements_ = 0, bucket_elements_ = 0;
  int turn_ = 0;
  Storages buffers_, reduced_, sums_;
  std::vector<BucketGradient> bucket_;
  StorageId owned_ = kNoStorage;
  DeepSpeedReduction result_;
};

}  // namespace

DeepSpeedReduction reduce_as_deepspeed(DeepSpeedProgram& program, const Dataflow& flow, const ZeroAnalysis& analysis,
                                       const FlatLayout& layout, const DeepSpeedSettings& settings, ZenFlow& zenflow) {
  return BucketReduction(program, flow, analysis, layout, settings, zenflow).run();
}

}  // namespace memwall
