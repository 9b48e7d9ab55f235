#include "policies/sharding/fsdp_reduction.h"

#include <algorithm>

#include "policies/trace/described.h"
#include "sim/error.h"

namespace memwall {

FsdpReduction::FsdpReduction(FsdpProgram& program, const Dataflow& flow, const FsdpUnits& units,
                             const FsdpLayout& layout, const FsdpPrecision& precision, const FsdpSettings& settings,
                             const ShardingGroup& shards, const ShardingGroup& replicas, std::uint16_t compute,
                             std::string_view stream)
    : program_(program),
      t_(program.base()),
      flow_(flow),
      units_(units),
      layout_(layout),
      precision_(precision),
      settings_(settings),
      shards_(shards),
      replicas_(replicas),
      compute_(compute),
      reduce_scatter_(program.stream(stream)),
      partial_(units.all().size(), kNoStorage),
      made_(units.all().size()),
      kept_(units.all().size()) {
  if (replicas.ranks > 1) all_reduce_ = program.stream("fsdp.all_reduce");
  for (const FsdpUnit& unit : units.all())
    for (const StorageId g : unit.gradients)
      if (t_.storages[g].preexisting) alive_.insert(g);
}

Bytes FsdpReduction::reduced_element(const Whole& gradient) const {
  const Bytes cast = bytes_of(settings_.reduce_dtype);
  return cast > 0 ? cast : precision_.kept_element(layout_.element(gradient.gradient));
}

Bytes FsdpReduction::made_element(const GradientMade& made) const {
  const StorageId as = precision_.made_as(made);
  const Bytes own = layout_.element(made.gradient);
  return as == kNoStorage ? own : t_.storages[as].bytes * own / t_.storages[made.gradient].bytes;
}

Bytes FsdpReduction::shard_bytes(StorageId gradient) const {
  return layout_.shard_elements(gradient) * precision_.kept_element(layout_.element(gradient));
}

bool FsdpReduction::lives(StorageId gradient) const { return alive_.contains(gradient); }

void FsdpReduction::begin_gradient(const GradientMade& made) {
  const std::size_t unit = units_.of_storage(made.gradient);
  const auto before = std::ranges::find(kept_[unit], made.gradient, &Whole::gradient);
  const Bytes element = made_element(made);
  StorageId storage = precision_.made_as(made);
  if (storage != kNoStorage) {
    made_[unit].push_back({made.gradient, storage, element});
    return;
  }
  // What passes without a reduction leave is kept in the reduce type.
  if (before != kept_[unit].end() && before->element == element) {
    storage = before->storage;  // autograd adds to it
  } else {
    const Storage& old = t_.storages[made.gradient];
    storage = program_.alloc({made.first_write, false}, old.bytes, StorageKind::gradient, made.gradient,
                             t_.strings[old.label], old.stream);
    made_[unit].push_back({made.gradient, storage, element});
  }
  for (const Touch& touch : flow_.touches(made.gradient))
    if (touch.op >= made.first_write && touch.op <= made.ready)
      program_.edit().repoint(touch.op, made.gradient, storage);
}

void FsdpReduction::post_backward(std::size_t unit, InsertionPoint point, bool reduces,
                                  const std::set<std::uint16_t>& streams) {
  if (made_[unit].empty() && kept_[unit].empty()) return;
  for (const std::uint16_t stream : streams) program_.wait_stream(point, compute_, stream);
  add_kept(unit, point);
  if (reduces)
    reduce(unit, point);
  else
    keep(unit, point);
}

// accumulate_unsharded_grad_if_needed: to what is kept in the reduce type.
void FsdpReduction::add_kept(std::size_t unit, InsertionPoint point) {
  std::vector<Whole> fresh;
  for (const Whole& made : made_[unit]) {
    const auto kept = std::ranges::find(kept_[unit], made.gradient, &Whole::gradient);
    if (kept == kept_[unit].end()) {
      fresh.push_back(made);
      continue;
    }
    const Bytes elements = t_.storages[made.gradient].bytes / layout_.element(made.gradient);
    program_.kernel(point, compute_, "fsdp.add_", elements * (2 * kept->element + made.element),
                    {made.storage, kept->storage}, {kept->storage});
    program_.free(point, made.storage);
  }
  made_[unit] = std::move(fresh);
}

// to_accumulated_grad_if_needed.
void FsdpReduction::keep(std::size_t unit, InsertionPoint point) {
  for (Whole& made : made_[unit]) {
    if (const Bytes element = element_to_keep(made); element != made.element) {
      const Bytes elements = t_.storages[made.gradient].bytes / layout_.element(made.gradient);
      const StorageId cast = program_.alloc(point, elements * element, StorageKind::gradient, made.gradient,
                                            t_.strings[t_.storages[made.gradient].label], compute_);
      program_.kernel(point, compute_, "fsdp.to", elements * (made.element + element), {made.storage}, {cast});
      program_.free(point, made.storage);
      made.storage = cast;
      made.element = element;
    }
    kept_[unit].push_back(made);
  }
  made_[unit].clear();
}

std::vector<FsdpReduction::Whole> FsdpReduction::take(std::size_t unit) {
  std::vector<Whole> whole = std::move(kept_[unit]);
  whole.insert(whole.end(), made_[unit].begin(), made_[unit].end());
  kept_[unit].clear();
  made_[unit].clear();
  std::ranges::sort(whole, {}, &Whole::gradient);
  return whole;
}

void FsdpReduction::reduce(std::size_t unit, InsertionPoint point) {
  const std::vector<Whole> whole = take(unit);
  if (in_flight_) {
    program_.wait(point, in_flight_->event, compute_);
    program_.free(point, in_flight_->input);
    in_flight_.reset();
  }
  Bytes message = 0, read = 0;
  std::vector<StorageId> sources;
  for (const Whole& g : whole) {
    message += layout_.padded_elements(g.gradient) * reduced_element(g);
    read += program_.edit().tables().storages[g.storage].bytes;
    sources.push_back(g.storage);
  }
  const StorageId input = program_.alloc(point, message, StorageKind::communication_buffer, whole.front().gradient,
                                         "fsdp.reduce_scatter_input", compute_);
  program_.kernel(point, compute_, "fsdp.chunk_cat", read + message, sources, {input});
  for (const StorageId source : sources) program_.free(point, source);
  program_.wait_stream(point, reduce_scatter_, compute_);
  const bool divides = settings_.reduce_dtype == DataType::fp16;
  const std::uint32_t ranks = shards_.ranks * replicas_.ranks, factor = predivide_factor(ranks);
  if (divides && factor > 1) program_.kernel(point, reduce_scatter_, "fsdp.div_", 2 * message, {input}, {input});
  scatter(whole, point, input, message, divides && ranks > factor);
}

std::uint32_t FsdpReduction::predivide_factor(std::uint32_t ranks) {
  std::uint32_t factor = 1;
  while (ranks % factor == 0 && ranks / factor > factor) factor *= 2;
  return factor;
}

void FsdpReduction::scatter(const std::vector<Whole>& whole, InsertionPoint point, StorageId input, Bytes message,
                            bool division) {
  largest_input_ = std::max(largest_input_, message);
  const Bytes part = message / shards_.ranks;
  const bool adds = std::ranges::any_of(whole, [this](const Whole& g) { return lives(g.gradient); });
  const bool casts = std::ranges::any_of(whole, [this](const Whole& g) {
    return layout_.shard_elements(g.gradient) * reduced_element(g) != shard_bytes(g.gradient);
  });
  // Without either the reduction's output is what the shards' gradients are views of.
  std::vector<StorageId> outputs;
  StorageId& partial = partial_[units_.of_storage(whole.front().gradient)];
  const bool passes_on = adds || casts || settings_.offloads || !sums_over_replicas_ || partial != kNoStorage;
  if (passes_on) {
    outputs = {program_.alloc(point, part, StorageKind::communication_buffer, whole.front().gradient,
                              "fsdp.reduce_scatter_output", reduce_scatter_)};
  } else {
    for (const Whole& g : whole) {
      move_alloc(g.gradient, point);
      outputs.push_back(g.gradient);
    }
  }
  program_.collective(point, reduce_scatter_, "fsdp.reduce_scatter", CollectiveKind::reduce_scatter, message, shards_,
                      {input}, outputs);
  in_flight_ = InFlight{input, program_.record(point, reduce_scatter_)};
  std::uint16_t behind = reduce_scatter_;
  if (partial != kNoStorage) {
    program_.kernel(point, reduce_scatter_, "fsdp.add_", 3 * part, {partial, outputs.front()}, {outputs.front()});
    program_.free(point, partial);
    partial = kNoStorage;
  }
  if (!sums_over_replicas_) {
    partial = outputs.front();
    reduced_.push_back(program_.record(point, reduce_scatter_));
    return;
  }
  if (replicas_.ranks > 1) {
    behind = all_reduce_;
    program_.wait_stream(point, all_reduce_, reduce_scatter_);
    program_.collective(point, all_reduce_, "fsdp.all_reduce", CollectiveKind::all_reduce, part, replicas_, outputs,
                        outputs);
  }
  if (division) program_.kernel(point, behind, "fsdp.div_", 2 * part, outputs, outputs);
  if (passes_on) place_shards(whole, point, part, outputs.front(), behind);
  reduced_.push_back(program_.record(point, behind));
}

// Casts the output, and adds it to what earlier passes left. `bytes`: of the output.
void FsdpReduction::place_shards(const std::vector<Whole>& whole, InsertionPoint point, Bytes bytes, StorageId output,
                                 std::uint16_t stream) {
  std::vector<StorageId> fresh, old;
  Bytes fresh_bytes = 0, old_bytes = 0;
  for (const Whole& g : whole) {
    (lives(g.gradient) ? old : fresh).push_back(g.gradient);
    (lives(g.gradient) ? old_bytes : fresh_bytes) += shard_bytes(g.gradient);
  }
  const Bytes kept = fresh_bytes + old_bytes;
  if (settings_.offloads) {
    StorageId sent = output;
    if (bytes != kept) {
      sent = program_.alloc(point, kept, StorageKind::communication_buffer, whole.front().gradient, "fsdp.cast",
                            reduce_scatter_);
      program_.kernel(point, stream, "fsdp.to", bytes + kept, {output}, {sent});
      give_back(output, point, stream);
    }
    download(whole, point, sent, stream);
    return give_back(sent, point, stream);
  }
  for (const StorageId g : fresh) move_alloc(g, point);
  if (!fresh.empty())
    program_.kernel(point, stream, "fsdp.to", bytes * fresh_bytes / kept + fresh_bytes, {output}, fresh);
  StorageId added = output;
  if (!old.empty() && bytes != kept) {
    added =
        program_.alloc(point, old_bytes, StorageKind::communication_buffer, old.front(), "fsdp.cast", reduce_scatter_);
    program_.kernel(point, stream, "fsdp.to", bytes * old_bytes / kept + old_bytes, {output}, {added});
  }
  if (!old.empty()) {
    std::vector<StorageId> reads = old;
    reads.push_back(added);
    program_.kernel(point, stream, "fsdp.add_", 3 * old_bytes, reads, old, old.size());
  }
  if (added != output) give_back(added, point, stream);
  give_back(output, point, stream);
}

// To the host, each gradient for itself; what an earlier pass has left there takes the sum, once the copy has come.
void FsdpReduction::download(const std::vector<Whole>& whole, InsertionPoint point, StorageId output,
                             std::uint16_t stream) {
  bool under_way = false;
  for (const Whole& g : whole) {
    const Bytes bytes = shard_bytes(g.gradient);
    const bool adds = lives(g.gradient);
    StorageId to = g.gradient;
    if (adds)
      to = program_.alloc_on_host(point, bytes, StorageKind::communication_buffer, "fsdp.gradient", false);
    else
      move_alloc(g.gradient, point);
    const bool pinned = settings_.pins_memory && !adds;
    program_.copy(point, stream, "fsdp.offload_gradient", FsdpProgram::Way::to_host, bytes, pinned, output, to);
    under_way = under_way || pinned;
    if (!adds) continue;
    program_.host_add(point, bytes, to, g.gradient);
    program_.free(point, to);
  }
  if (under_way) downloads_.push_back(program_.record(point, stream));
}

void FsdpReduction::await_downloads(InsertionPoint point) {
  for (const std::uint32_t event : downloads_) program_.synchronize(point, event);
  downloads_.clear();
}

// A storage of the reduce-scatter stream's pool; what another stream used stays until compute has waited for that.
void FsdpReduction::give_back(StorageId storage, InsertionPoint point, std::uint16_t user) {
  if (user == reduce_scatter_)
    program_.free(point, storage);
  else
    outputs_.push_back(storage);
}

// The shard begins to live here, in the pool of the stream that writes it.
void FsdpReduction::move_alloc(StorageId gradient, InsertionPoint point) {
  alive_.insert(gradient);
  TraceEdit& edit = program_.edit();
  edit.remove(flow_.alloc(gradient));
  edit.tables().storages[gradient].stream = reduce_scatter_;
  edit.alloc(point, gradient);
  if (const OpId free = flow_.free(gradient); free != kNoOp) {
    Op op = t_.ops[free];
    op.stream = reduce_scatter_;
    edit.replace(free, op);
  }
}

void FsdpReduction::require_all_reduced() const {
  for (const std::vector<Whole>& left : made_)
    if (!left.empty())
      throw UsageError("Policy 'fsdp' cannot shard trace '" + t_.name +
                       "': " + described_storage(t_, left.front().gradient) +
                       " is made outside of the backward of its unit, as where a kernel does the work of several "
                       "modules; expected a step whose modules are apart, or other units=.");
}

void FsdpReduction::end_backward(InsertionPoint point) {
  require_all_reduced();
  await_downloads(point);
  for (const std::uint32_t event : reduced_) program_.wait(point, event, compute_);
  reduced_.clear();
  for (const StorageId output : outputs_) program_.free(point, output);
  outputs_.clear();
  if (!in_flight_) return;
  program_.wait(point, in_flight_->event, compute_);
  program_.free(point, in_flight_->input);
  in_flight_.reset();
}

}  // namespace memwall
