// Passes as one kernel each, and the passes of one chunk alone, from which their costs are found.
#include <algorithm>

#include "models/workload/generate/network.h"
#include "models/workload/generate/operators/operators.h"
#include "models/workload/generate/parallel/pass_events.h"
#include "models/workload/generate/parallel/stage_program.h"
#include "sim/error.h"

namespace memwall {
namespace {

Bytes& of_kind(BytesByKind& bytes, StorageKind kind) { return bytes[static_cast<std::size_t>(kind)]; }

}  // namespace

// Passes whose messages are parts that their receivers gather are written out.
// Where the first rank reduces from within its last backward pass, that one is written out, and so is its forward;
// likewise the first pass, where parameters are gathered within it. FSDP2 gathers within the first micro-batch's
// passes, and makes there what gradients add up in, on every rank.
StageProgram::PassForm StageProgram::form_of(const PipelinePass& pass) const {
  if (sends_parts()) return PassForm::written_out;
  const ModelParallel& p = job_.recipe.parallel;
  if (gradients_->is_sharded() && pass.microbatch == 0) return PassForm::written_out;
  if (rank_ != 0 || pass.chunk != 0 || job_.data() == 1) return form_;
  if (p.overlap_grad_reduce && job_.pipeline.chunks == 1 && is_last_microbatch(pass)) return PassForm::written_out;
  return p.overlap_param_gather && pass.microbatch == 0 ? PassForm::written_out : form_;
}

// Storages of a pass, one of each kind, which live from here on. Equal ones of several passes are one storage, several
// times.
std::vector<StorageId> StageProgram::begin_bundle(const BytesByKind& bytes) {
  std::vector<StorageId> bundle;
  for (std::size_t kind = 0; kind < bytes.size(); ++kind) {
    if (bytes[kind] <= 0) continue;
    const auto [known, is_new] = bundles_.try_emplace({kind, bytes[kind]});
    if (is_new)
      known->second = tape_.builder().add_storage(bytes[kind], static_cast<StorageKind>(kind), "hbm", "folded");
    bundle.push_back(known->second);
    lives_.push_back({known->second, true});
  }
  return bundle;
}

void StageProgram::end_bundle(const std::vector<StorageId>& bundle) {
  for (const StorageId id : bundle) lives_.push_back({id, false});
}

// `released`: what was there before and is counted in `costs` from here on.
void StageProgram::fold(const FoldedPass& costs, BytesByKind released, PassPlace& place) {
  for (std::size_t kind = 0; kind < released.size(); ++kind) released[kind] += costs.peak[kind];
  const std::vector<StorageId> needed = begin_bundle(released);
  place.begin = next_op();
  place.folded = true;
  place.has_tail = costs.has_tail;
  TapeKernel work;
  work.name = place.pass.backward ? "memwall::backward_pass" : "memwall::forward_pass";
  work.shape = {1};
  work.bytes = 0;
  tape_.kernel(work, {}, {});
  end_bundle(needed);
}

// The host's part, which stands as the writer of what the pass leaves.
void StageProgram::end_folded(PassPlace& place, const Tensors& made) {
  std::vector<const Tensor*> writes;
  for (const Tensor& t : made) writes.push_back(&t);
  Op host;
  host.kind = OpKind::host_work;
  place.host = tape_.append(host, "memwall::pass", {}, writes);
  if (place.has_tail) {
    Op kernel;
    kernel.kind = OpKind::kernel;
    place.tail = tape_.append(kernel, "memwall::pass", {}, {});
  }
  place.end = next_op();
}

// A rank allocates and frees in the order of its program. Of equal peaks the first one.
StagePeak StageProgram::peak_of_lives() {
  const Trace& trace = tape_.trace();
  const std::uint8_t device = device_place(trace);
  StagePeak peak;
  BytesByKind now{};
  for (const Storage& s : trace.storages)
    if (s.preexisting && s.place == device) of_kind(now, s.kind) += s.bytes;
  Bytes total = 0;
  for (const Bytes bytes : now) total += bytes;
  peak = {total, now};
  for (const Tape::StorageChange& change : lives_) {
    const Storage& s = trace.storages[change.storage];
    if (s.place != device) continue;
    const Bytes bytes = change.begins ? s.bytes : -s.bytes;
    of_kind(now, s.kind) += bytes;
    total += bytes;
    if (total > peak.bytes) peak = {total, now};
  }
  return peak;
}

void StageProgram::forward_folded(const PipelinePass& pass, Tensor received) {
  const FoldedPass& costs = folded_[static_cast<std::size_t>(pass.chunk)].forward;
  gathers_->about_to_run(pass.chunk);
  const StageLayers& layers = layers_of(pass.chunk);
  const OpId load_begins = next_op();
  InFlight& flight = flight_[key(pass)];
  load_batch(layers);  // counted in the costs: of the pass and what it loads
  if (received) {
    flight.received = std::make_unique<Parameter>();
    flight.received->value = received;
  }
  PassPlace& place = begin_place(pass, load_begins);
  fold(costs, {}, place);
  flight.kept = begin_bundle(costs.after);
  if (is_last(pass.chunk))
    flight.output = tape_.make("loss", {}, DataType::fp32);
  else
    flight.output = tape_.make("output", chunks_.front()->message_shape(), parameter_type(job_.recipe.precision));
  place.result = flight.output.storage->id();
  end_folded(place, {flight.output});
}

void StageProgram::backward_folded(const PipelinePass& pass, Tensor gradient) {
  InFlight& flight = flight_.at(key(pass));
  const FoldedChunk& chunk = folded_[static_cast<std::size_t>(pass.chunk)];
  tape_.phase = Phase::backward;
  const std::vector<Parameter*>& own = parameters_[static_cast<std::size_t>(pass.chunk)];
  const bool first = !gradients_->in_buffers() && !own.front()->gradient;
  BytesByKind released{};
  const auto release = [&](Tensor& t) {
    if (!t) return;
    const bool is_held = t.storage.use_count() > 1;  // by a message that nobody has waited for
    if (is_held || tape_.trace().storages[t.storage->id()].preexisting) return t.reset();
    of_kind(released, tape_.trace().storages[t.storage->id()].kind) += t.bytes();
    t.reset();
  };
  for (const StorageId id : flight.kept)
    of_kind(released, tape_.trace().storages[id].kind) += tape_.trace().storages[id].bytes;
  end_bundle(flight.kept);
  if (flight.received) release(flight.received->value);
  release(gradient);
  release(flight.output);
  gradients_->begin_pass(pass.chunk, is_last_microbatch(pass));
  PassPlace& place = begin_place(pass, next_op());
  fold(first ? chunk.first_backward : chunk.backward, released, place);
  Tensors made;
  make_parameter_gradients(pass, &made);
  if (flight.received) {
    made.push_back(flight.received->gradient = message_buffer("gradient"));
    place.result = flight.received->gradient.storage->id();
  }
  end_folded(place, made);
  if (gradients_->in_buffers() && !gradients_->is_sharded())
    for (Parameter* p : own)
      if (p->accumulated) p->accumulated(*p);
}

// Gradients that have no buffer come with the first backward pass and stay.
void StageProgram::make_parameter_gradients(const PipelinePass& pass, Tensors* made) {
  const std::vector<Parameter*>& own = parameters_[static_cast<std::size_t>(pass.chunk)];
  if (gradients_->in_buffers() || own.empty() || own.front()->gradient) return;
  for (Parameter* p : own) {
    p->gradient = tape_.make("gradient", p->value.shape, p->value.type);
    tape_.trace().storages[p->gradient.storage->id()].kind = StorageKind::gradient;
    if (made != nullptr) made->push_back(p->gradient);
  }
}

void StageProgram::note_parameter_gradients(PassPlace& place) {
  if (gradients_->in_buffers()) return;
  for (const Parameter* p : parameters_[static_cast<std::size_t>(place.pass.chunk)])
    place.parameter_gradients.push_back(p->gradient ? p->gradient.storage->id() : kNoStorage);
}

// Whoever reads the lives allocates and frees at the mark; what comes behind it is what passes leave to others.
void StageProgram::forward_marked(const PipelinePass& pass, Tensor received) {
  gathers_->about_to_run(pass.chunk);
  InFlight& flight = flight_[key(pass)];
  PassPlace& place = begin_place(pass, next_op());
  place.entered = place.begin;
  place.marked = true;
  if (received) {
    place.received = received.storage->id();
    flight.received = std::make_unique<Parameter>();
    flight.received->value = std::move(received);
  }
  if (is_last(pass.chunk))
    flight.output = tape_.make("loss", {}, DataType::fp32);
  else
    flight.output = tape_.make("output", chunks_.front()->message_shape(), parameter_type(job_.recipe.precision));
  place.result = flight.output.storage->id();
  place.end = place.left = next_op();
}

void StageProgram::backward_marked(const PipelinePass& pass, Tensor gradient) {
  InFlight& flight = flight_.at(key(pass));
  tape_.phase = Phase::backward;
  gradients_->begin_pass(pass.chunk, is_last_microbatch(pass));
  PassPlace& place = begin_place(pass, next_op());
  place.entered = place.begin;
  place.marked = true;
  if (gradient) place.received = gradient.storage->id();
  make_parameter_gradients(pass, nullptr);
  note_parameter_gradients(place);
  if (flight.received) {
    flight.received->gradient = message_buffer("gradient");
    place.result = flight.received->gradient.storage->id();
    flight.received->value.reset();
  }
  gradient.reset();
  flight.output.reset();
  place.end = place.left = next_op();
  if (!gradients_->in_buffers() || gradients_->is_sharded()) return;
  for (Parameter* p : parameters_[static_cast<std::size_t>(pass.chunk)])
    if (p->accumulated) p->accumulated(*p);
}

StageTrace StageProgram::write_marked() && {
  form_ = PassForm::mark;
  tape_.lives = &lives_;
  tape_.omits_messages = true;
  run_step();
  return finish();
}

StageTrace StageProgram::write_chunk(std::int64_t chunk, std::int64_t passes, bool drained) && {
  is_alone_ = true;
  begin();
  const auto drain = [&] {
    if (!drained) return;
    Op op;
    op.kind = OpKind::synchronize;
    op.wait_for = WaitFor::device;
    tape_.append(op, "cudaDeviceSynchronize", {}, {});
  };
  const auto message = [&](const Tensors& kept, std::int64_t k) {
    Tensor t = receive_buffer("message", kept, k);
    Op op;
    op.kind = OpKind::host_work;
    const Tensor* const one[] = {&t};
    tape_.append(op, "memwall::message", {}, one);
    return t;
  };
  for (std::int64_t k = 0; k < passes; ++k) {
    const PipelinePass there{false, chunk, k}, back{true, chunk, k};
    tape_.phase = Phase::forward;
    Tensor received = is_first(chunk) ? Tensor() : message(kept_of(kept_inputs_, chunk), k);
    drain();
    forward(there, std::move(received));
    drop_output(there);
    tape_.phase = Phase::backward;
    Tensor gradient = is_last(chunk) ? Tensor() : message(kept_of(kept_gradients_, chunk), k);
    drain();
    backward(back, std::move(gradient));
    flight_.erase(key(back));
  }
  drain();
  return finish();
}

}  // namespace memwall
