#include "policies/sharding/deepspeed_scatter.h"

#include <algorithm>
#include <deque>

#include "policies/sharding/deepspeed_layout.h"
#include "policies/sharding/deepspeed_whole_gradients.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr std::size_t kReduceEvents = 2;  // max_param_reduce_events
// Host time of a reduction and of each gradient in it, in that of a hook, as models/hw/calibrate/deepspeed_host.py
// measures it.
constexpr double kScatterCall = 5, kPartitioned = 1;

struct ScatterGradient {
  StorageId base = kNoStorage, whole = kNoStorage, parameter = kNoStorage;
  std::int64_t elements = 0, share = 0;
  Bytes element = 2;
  bool copied = false;  // into the bucket buffer
  bool on_host = false;
  bool is_vector = false;
};

class ScatterReduction {
 public:
  ScatterReduction(DeepSpeedProgram& program, const Dataflow& flow, const ZeroAnalysis& analysis,
                   const PartitionPlace& place, const DeepSpeedSettings& settings, std::uint32_t ranks_per_node)
      : p_(program),
        edit_(program.edit()),
        t_(program.base()),
        flow_(flow),
        analysis_(analysis),
        place_(place),
        settings_(settings),
        node_(std::min(ranks_per_node, settings.ranks)),
        sizes_(element_sizes(t_, flow, analysis.gradients)),
        parameter_of_(parameters_of_gradients(t_, flow, analysis.gradients, analysis.trained)),
        whole_(program.edit(), flow, analysis) {}

  ScatteredGradients run() {
    require_one_pass();
    make_buffers();
    result_.unswapped.emplace_back();
    whole_.drop_base();
    for (const BackwardPass& pass : analysis_.passes) {
      reduce(pass);
      first_ = pass.before_update;
      if (!pass.before_update) continue;
      result_.steps.emplace_back(pass.last_backward, compute_);
      result_.unswapped.emplace_back();
      if (place_.swap != nullptr) place_.swap->end_step();
      if (place_.super != nullptr) place_.super->end_step();
    }
    whole_.finish();
    return std::move(result_);
  }

 private:
  // What is accumulated needs a place.
  void require_one_pass() const {
    if (settings_.grad_partitions_flat_buffer) return;
    for (const BackwardPass& pass : analysis_.passes)
      if (!pass.before_update)
        throw UsageError(
            "Policy 'deepspeed': grad_partitions_flat_buffer=0 leaves no place to add up the gradients of several "
            "micro-batches; expected a step of one.");
  }

  StorageId at_rest(Bytes bytes, StorageKind kind, const char* label) {
    const StorageId id = p_.device_storage(bytes, kind, 0, label);
    edit_.tables().storages[id].preexisting = true;
    return id;
  }

  void make_buffers() {
    for (const StorageId id : analysis_.gradients) element_ = std::max(element_, sizes_.at(id));
    const Bytes bucket = settings_.reduce_bucket_size * element_;
    if (settings_.contiguous_gradients) {
      ipg_ = at_rest(bucket, StorageKind::communication_buffer, "ipg_buffer");
      result_.buffer_bytes = bucket;
    }
    const Bytes own = place_.own * element_;
    if (!settings_.offloads_optimizer()) {
      result_.buffer = at_rest(own, StorageKind::gradient, "gradient_partitions");
      return;
    }
    if (settings_.grad_partitions_flat_buffer)
      result_.buffer = p_.host_storage(own, StorageKind::gradient, "gradient_partitions");
    if (place_.swap != nullptr) return;
    result_.wide = p_.host_storage(4 * place_.own_on_host, StorageKind::gradient, "fp32_gradients");
    if (place_.own > place_.own_on_host)
      result_.wide_on_device =
          at_rest(4 * (place_.own - place_.own_on_host), StorageKind::gradient, "fp32_gradients_on_device");
  }

  void reduce(const BackwardPass& pass) {
    last_ = pass.before_update;
    whole_.forget();
    whole_.make(pass);
    for (const GradientMade& made : pass.made) {
      const Op& op = t_.ops[made.ready];
      if (runs_on_device(op.kind)) compute_ = op.stream;
      reduction_ = settings_.overlap_comm ? edit_.stream("deepspeed.reduction", StreamRole::communication) : compute_;
      add({made.ready, true}, made.gradient);
    }
    const InsertionPoint end{pass.last_backward, true};
    send(end);
    p_.synchronize_stream(end, reduction_);
  }

  ScatterGradient described(StorageId base) const {
    ScatterGradient g;
    g.base = base;
    g.whole = whole_.all().at(base);
    g.element = sizes_.at(base);
    g.elements = t_.storages[base].bytes / g.element;
    g.share = (g.elements + settings_.ranks - 1) / settings_.ranks;
    g.is_vector = t_.shapes[t_.storages[base].shape].size() == 1;
    const auto parameter = parameter_of_.find(base);
    if (parameter != parameter_of_.end()) g.parameter = parameter->second;
    const auto on_host =
        parameter == parameter_of_.end() ? place_.on_host.end() : place_.on_host.find(parameter->second);
    g.on_host = settings_.offloads_optimizer() && (on_host == place_.on_host.end() || on_host->second);
    return g;
  }

  // A hook of one parameter.
  void add(InsertionPoint point, StorageId base) {
    p_.hook(point);
    ScatterGradient gradient = described(base);
    if (!bucket_.empty() && elements_ + gradient.elements > settings_.reduce_bucket_size) send(point);
    if (settings_.contiguous_gradients && elements_ + gradient.elements <= settings_.reduce_bucket_size) {
      gradient.copied = true;
      const Bytes bytes = gradient.elements * gradient.element;
      p_.wait_stream(point, reduction_, compute_);
      p_.kernel(point, reduction_, "copy_to_bucket", 2 * bytes, {gradient.whole}, {ipg_});
      p_.free_behind(point, gradient.whole, reduction_);
    }
    bucket_.push_back(gradient);
    elements_ += gradient.elements;
  }

  void send(InsertionPoint point) {
    if (bucket_.empty()) return;
    if (events_.size() > kReduceEvents) {
      p_.synchronize_event(point, events_.front());
      events_.pop_front();
    }
    p_.hook(point, kScatterCall + kPartitioned * static_cast<double>(bucket_.size()));
    p_.wait_stream(point, reduction_, compute_);
    if (quantizes())
      exchange(point);
    else if (!settings_.reduce_scatter && bucket_.back().copied)
      all_reduce(point);
    else
      scatter(point);
    if (last_ && place_.super != nullptr) {
      Storages parameters;
      for (const ScatterGradient& gradient : bucket_) parameters.push_back(gradient.parameter);
      place_.super->arrived(point, reduction_, parameters);
    }
    for (const ScatterGradient& gradient : bucket_)
      if (!gradient.copied) p_.free_behind(point, gradient.whole, reduction_);
    events_.push_back(edit_.record(point, reduction_));
    ++result_.buckets;
    bucket_.clear();
    elements_ = 0;
  }

  Storages sources() const {
    Storages all;
    for (const ScatterGradient& gradient : bucket_) {
      const StorageId source = gradient.copied ? ipg_ : gradient.whole;
      if (std::ranges::find(all, source) == all.end()) all.push_back(source);
    }
    return all;
  }

  Bytes padded_bytes() const {
    Bytes bytes = 0;
    for (const ScatterGradient& gradient : bucket_) bytes += gradient.share * settings_.ranks * gradient.element;
    return bytes;
  }

  void scatter(InsertionPoint point) {
    const Bytes bytes = padded_bytes();
    const bool in_place = bucket_.size() == 1 && bucket_.front().elements % settings_.ranks == 0;
    StorageId flat = sources().front();
    if (!in_place) {
      flat = p_.device_storage(bytes, StorageKind::communication_buffer, reduction_, "cut_bucket");
      edit_.alloc(point, flat);
      p_.kernel(point, reduction_, "cut_by_rank", 2 * bytes, sources(), {flat});
      const Bytes bucket = ipg_ == kNoStorage ? 0 : settings_.reduce_bucket_size * element_;
      result_.buffer_bytes = std::max(result_.buffer_bytes, bucket + bytes);
    }
    p_.kernel(point, reduction_, "divide", 2 * bytes, {flat}, {flat});
    p_.collective(point, reduction_, CollectiveKind::reduce_scatter, bytes, {flat}, {flat});
    for (const ScatterGradient& gradient : bucket_) keep(point, gradient, flat);
    if (!in_place) edit_.free(point, flat);
  }

  void all_reduce(InsertionPoint point) {
    Bytes bytes = 0;
    for (const ScatterGradient& gradient : bucket_) bytes += gradient.elements * gradient.element;
    p_.kernel(point, reduction_, "divide", 2 * bytes, {ipg_}, {ipg_});
    p_.collective(point, reduction_, CollectiveKind::all_reduce, bytes, {ipg_}, {ipg_});
    for (const ScatterGradient& gradient : bucket_) keep(point, gradient, ipg_);
  }

  bool quantizes() const {
    if (!settings_.quantized_gradients || node_ >= settings_.ranks || settings_.ranks % node_ != 0) return false;
    return std::ranges::all_of(bucket_, [&](const ScatterGradient& gradient) {
      return !gradient.is_vector && gradient.elements % (2 * std::int64_t{settings_.ranks}) == 0;
    });
  }

  // Half a byte per element, each rank's whole bucket within the node, then its part of that between nodes.
  void exchange(InsertionPoint point) {
    Bytes full = 0;
    std::int64_t elements = 0;
    for (const ScatterGradient& gradient : bucket_) {
      elements += gradient.elements;
      full += gradient.elements * gradient.element;
    }
    const Bytes inner = elements / 2, outer = elements / 2 / node_;
    const StorageId flat = p_.device_storage(inner, StorageKind::communication_buffer, reduction_, "int4_bucket");
    edit_.alloc(point, flat);
    p_.kernel(point, reduction_, "quantize", full + inner, sources(), {flat});
    p_.collective(point, reduction_, CollectiveKind::all_to_all, inner, {flat}, {flat}, {node_, 1});
    p_.kernel(point, reduction_, "sum_and_quantize", inner + outer, {flat}, {flat});
    p_.collective(point, reduction_, CollectiveKind::all_to_all, outer, {flat}, {flat},
                  {settings_.ranks / node_, node_});
    p_.kernel(point, reduction_, "dequantize_and_sum", outer + full / settings_.ranks, {flat}, {flat});
    for (const ScatterGradient& gradient : bucket_) keep(point, gradient, flat);
    edit_.free(point, flat);
  }

  // The rank's part, summed over the ranks, stands in `source`.
  void keep(InsertionPoint point, const ScatterGradient& gradient, StorageId source) {
    const Bytes bytes = gradient.share * gradient.element;
    if (!settings_.offloads_optimizer()) {
      if (first_) return p_.kernel(point, reduction_, "copy_to_partition", 2 * bytes, {source}, {result_.buffer});
      return p_.kernel(point, reduction_, "accumulate", 3 * bytes, {source, result_.buffer}, {result_.buffer});
    }
    if (!first_) {
      const StorageId returned = p_.device_storage(bytes, StorageKind::workspace, reduction_, "accumulated_gradient");
      edit_.alloc(point, returned);
      p_.copy(point, reduction_, bytes, result_.buffer, {returned});
      p_.kernel(point, reduction_, "accumulate", 3 * bytes, {source, returned}, {source});
      edit_.free(point, returned);
    }
    if (result_.buffer != kNoStorage) p_.copy(point, reduction_, bytes, source, {result_.buffer});
    if (last_) keep_wide(point, gradient, source);
  }

  void keep_wide(InsertionPoint point, const ScatterGradient& gradient, StorageId source) {
    const Bytes cast = gradient.share * (gradient.element + 4);
    if (!gradient.on_host)
      return p_.kernel(point, reduction_, "cast_to_fp32", cast, {source}, {result_.wide_on_device});
    const Bytes bytes = 4 * gradient.share;
    const StorageId wide = p_.device_storage(bytes, StorageKind::gradient, reduction_, "fp32_part");
    edit_.alloc(point, wide);
    p_.kernel(point, reduction_, "cast_to_fp32", cast, {source}, {wide});
    if (place_.swap == nullptr)
      p_.copy(point, reduction_, bytes, wide, {result_.wide});
    else if (is_swappable(bytes, settings_.aio))
      place_.swap->take(point, reduction_, wide, bytes);
    else
      return result_.unswapped.back().push_back({gradient.parameter, wide, bytes});
    edit_.free(point, wide);
  }

  DeepSpeedProgram& p_;
  TraceEdit& edit_;
  const Trace& t_;
  const Dataflow& flow_;
  const ZeroAnalysis& analysis_;
  const PartitionPlace& place_;
  const DeepSpeedSettings& settings_;
  std::uint32_t node_;                      // ranks of one node
  const std::map<StorageId, Bytes> sizes_;  // of one element, by gradient
  const std::map<StorageId, StorageId> parameter_of_;
  WholeGradients whole_;
  bool first_ = true, last_ = true;  // micro-batch of the step
  Bytes element_ = 2;
  std::uint16_t compute_ = 0, reduction_ = 0;
  StorageId ipg_ = kNoStorage;
  std::vector<ScatterGradient> bucket_;
  std::int64_t elements_ = 0;  // in the bucket
  std::deque<std::uint32_t> events_;
  ScatteredGradients result_;
};

}  // namespace

ScatteredGradients scatter_gradients(DeepSpeedProgram& program, const Dataflow& flow, const ZeroAnalysis& analysis,
                                     const PartitionPlace& place, const DeepSpeedSettings& settings,
                                     std::uint32_t ranks_per_node) {
  return ScatterReduction(program, flow, analysis, place, settings, ranks_per_node).run();
}

}  // namespace memwall
