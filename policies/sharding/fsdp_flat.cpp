#include "policies/sharding/fsdp_flat.h"

#include <algorithm>

namespace memwall {
namespace {

// Source: torch/distributed/fsdp/_limiter_utils.py, _FreeEventQueue.
constexpr std::size_t kMostQueuedFrees = 2;

}  // namespace

FlatGathers::FlatGathers(FsdpProgram& program, const FsdpUnits& units, const FsdpLayout& layout,
                         const FsdpPrecision& precision, const FsdpSettings& settings, const ShardingGroup& group,
                         std::uint16_t compute)
    : FsdpParameters(program, units, layout, precision, settings, group, compute),
      pre_unshard_(program.stream("fsdp.pre_unshard")),
      unshard_(program.stream("fsdp.unshard")),
      state_(units.all().size(), State::sharded) {}

void FlatGathers::begin_forward(InsertionPoint point) {
  program_.wait_stream(point, unshard_, compute_);
  program_.wait_stream(point, pre_unshard_, compute_);
}

void FlatGathers::limit(InsertionPoint point) {
  if (!settings_.limits_gathers || frees_.size() < kMostQueuedFrees) return;
  program_.synchronize(point, frees_.front());
  frees_.pop_front();
}

void FlatGathers::unshard(std::size_t unit, InsertionPoint point) {
  const std::vector<StorageId>& parameters = units_.all()[unit].parameters;
  if (parameters.empty() || state_[unit] != State::sharded) return;
  Bytes message = 0, kept = 0;
  std::vector<StorageId> shards;
  for (const StorageId p : parameters) {
    message += layout_.padded_elements(p) * precision_.gathered_element(layout_.element(p));
    kept += layout_.shard_elements(p) * layout_.element(precision_.at_rest(p));
    shards.push_back(precision_.at_rest(p));
  }
  const Bytes part = message / group_.ranks;
  std::vector<StorageId> source = shards, uploaded;
  if (settings_.offloads) {
    uploaded = program_.upload(point, pre_unshard_, shards, settings_.pins_memory);
    source.insert(source.end(), uploaded.begin(), uploaded.end());
    if (kept == part) program_.wait_stream(point, unshard_, pre_unshard_);
  }
  StorageId cast = kNoStorage;
  if (kept != part) {
    cast = program_.alloc(point, part, StorageKind::communication_buffer, parameters.front(), "fsdp.mp_shard",
                          pre_unshard_);
    program_.kernel(point, pre_unshard_, "fsdp.copy_", kept + part, uploaded.empty() ? shards : uploaded, {cast});
    program_.wait_stream(point, unshard_, pre_unshard_);
    source.push_back(cast);
  }
  limit(point);
  const Trace& t = program_.base();
  std::vector<StorageId> filled;
  for (const StorageId p : parameters) {
    whole_[p] = program_.alloc(point, filled.empty() ? message : 0, StorageKind::parameter, p,
                               filled.empty() ? "fsdp.flat_parameter" : t.strings[t.storages[p].label], unshard_);
    filled.push_back(whole_[p]);
  }
  program_.collective(point, unshard_, "fsdp.all_gather", CollectiveKind::all_gather, message, group_, source, filled);
  if (cast != kNoStorage) program_.free_behind(point, cast, unshard_);
  for (const StorageId copy : uploaded) program_.free_behind(point, copy, unshard_);
  state_[unit] = State::under_way;
  largest_buffer_ = std::max(largest_buffer_, message);
}

void FlatGathers::wait_for_unshard(std::size_t unit, InsertionPoint point, bool,
                                   const std::set<std::uint16_t>& streams) {
  if (state_[unit] != State::under_way) return;
  const std::uint32_t gathered = program_.record(point, unshard_);
  program_.wait(point, gathered, compute_);
  for (const std::uint16_t stream : streams)
    if (stream != compute_) program_.wait(point, gathered, stream);
  state_[unit] = State::whole;
}

void FlatGathers::reshard(std::size_t unit, InsertionPoint point, const std::set<std::uint16_t>& streams) {
  if (state_[unit] != State::whole) return;
  for (const std::uint16_t stream : streams) program_.wait_stream(point, compute_, stream);
  for (const StorageId p : units_.all()[unit].parameters) {
    program_.free_behind(point, whole_.at(p), compute_);
    whole_.erase(p);
  }
  state_[unit] = State::sharded;
  if (settings_.limits_gathers) frees_.push_back(program_.record(point, compute_));
}

void FlatGathers::reshard_after_forward(std::size_t unit, InsertionPoint point,
                                        const std::set<std::uint16_t>& streams) {
  if ((unit == 0 ? settings_.root_forward_shards : settings_.forward_shards) > 0) reshard(unit, point, streams);
}

Bytes FlatReduction::reduced_element(const Whole& gradient) const {
  const Bytes cast = bytes_of(settings_.reduce_dtype);
  return cast > 0 ? cast : precision_.gathered_element(gradient.element);
}

void FlatReduction::reduce(std::size_t unit, InsertionPoint point) {
  const std::vector<Whole> whole = take(unit);
  Bytes made = 0, elements = 0, padded = 0, wide = 0, element = 0;
  std::vector<StorageId> sources;
  for (const Whole& g : whole) {
    const Bytes own = program_.edit().tables().storages[g.storage].bytes;
    made += own;
    elements += own / g.element;
    padded += layout_.padded_elements(g.gradient);
    wide = std::max(wide, g.element);
    element = std::max(element, reduced_element(g));
    sources.push_back(g.storage);
  }
  if (settings_.alignment > 1) elements = padded;  // the flat parameter's own end is padded
  const auto buffer = [&](Bytes bytes, const char* label, std::uint16_t stream) {
    return program_.alloc(point, bytes, StorageKind::communication_buffer, whole.front().gradient, label, stream);
  };
  // Split's backward: one flat gradient of all views.
  StorageId flat = sources.front();
  if (sources.size() > 1) {
    flat = buffer(elements * wide, "fsdp.flat_gradient", compute_);
    program_.kernel(point, compute_, "fsdp.cat", made + elements * wide, sources, {flat});
    for (const StorageId source : sources) program_.free(point, source);
  }
  program_.wait_stream(point, reduce_scatter_, compute_);
  StorageId input = flat;
  if (element != wide) {
    input = buffer(elements * element, "fsdp.cast", reduce_scatter_);
    program_.kernel(point, reduce_scatter_, "fsdp.to", elements * (wide + element), {flat}, {input});
  }
  if (padded != elements) {
    const StorageId unpadded = input;
    input = buffer(padded * element, "fsdp.padded_gradient", reduce_scatter_);
    program_.kernel(point, reduce_scatter_, "fsdp.pad", (elements + padded) * element, {unpadded}, {input});
    if (unpadded != flat) program_.free(point, unpadded);
  }
  const Bytes message = padded * element;
  const std::uint32_t ranks = shards_.ranks * replicas_.ranks, factor = predivide_factor(ranks);
  if (factor > 1) program_.kernel(point, reduce_scatter_, "fsdp.div_", 2 * message, {input}, {input});
  scatter(whole, point, input, message, ranks > factor);
  forget_input();
  if (input != flat) program_.free(point, input);
  program_.free_behind(point, flat, reduce_scatter_);
}

void FlatReduction::end_backward(InsertionPoint point) {
  require_all_reduced();
  if (!reduced_.empty()) {
    program_.wait_stream(point, compute_, reduce_scatter_);
    if (replicas_.ranks > 1) program_.wait_stream(point, compute_, all_reduce_);
  }
  reduced_.clear();
  for (const StorageId output : outputs_) program_.free(point, output);
  outputs_.clear();
  await_downloads(point);
}

}  // namespace memwall
