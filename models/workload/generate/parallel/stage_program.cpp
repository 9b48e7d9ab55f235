#include "models/workload/generate/parallel/stage_program.h"

#include <algorithm>
#include <cassert>
#include <limits>
#include <string_view>

#include "models/workload/generate/network.h"
#include "models/workload/generate/operators/operators.h"
#include "models/workload/generate/parallel/parallel_update.h"
#include "sim/trace/pass_end_mark.h"

namespace memwall {
namespace {

std::vector<std::uint32_t> all_ranks(const ParallelJob& job) {
  std::vector<std::uint32_t> members(job.world());
  for (std::uint32_t i = 0; i < job.world(); ++i) members[i] = i;
  return members;
}

// A stream for communication, or the compute stream where a group is of one and has none.
std::uint16_t stream_for(Tape& tape, const char* name, std::int64_t ranks) {
  return ranks == 1 ? std::uint16_t{0} : tape.builder().add_stream(name, StreamRole::communication);
}

}  // namespace

StageProgram::StageProgram(const ParallelJob& job, std::int64_t rank)
    : job_(job),
      rank_(rank),
      tape_(job.model.name),
      tensor_stream_(stream_for(tape_, "tensor parallel", job.tensor())),
      data_stream_(stream_for(tape_, "data parallel", job.data())),
      world_stream_(stream_for(tape_, "all ranks", job.world())),
      tensor_(tape_, kTensorParallelGroup, job.grid.group(job.number(rank), "tp"), tensor_stream_),
      data_(tape_, kDataParallelGroup, job.grid.group(job.number(rank), "dp"), data_stream_),
      world_(tape_, "all ranks", all_ranks(job), world_stream_),
      parallel_{tensor_, job.recipe.parallel.sequence_parallel,
                job.recipe.parallel.tp_comm_overlap || job.recipe.parallel.async_tensor_parallel,
                job.recipe.parallel.async_tensor_all_reduce, job.recipe.parallel.async_tensor_parallel},
      parts_(tape_, tensor_, is_deepspeed()),
      messages_(tape_, job, rank),
      inputs_(static_cast<std::size_t>(job.pipeline.chunks)),
      output_gradients_(static_cast<std::size_t>(job.pipeline.chunks)) {
  tape_.sums_in_place = job.recipe.sums_in_place;
  tape_.parameters_are_gathered = divides_parameters(job.recipe);
  make_chunks();
  make_receive_buffers();
  const std::int64_t last = job.pipeline.ranks - 1;
  if (job.model.tied_embedding && last > 0 && (rank == 0 || rank == last)) {
    std::vector<std::uint32_t> ends{job.number(0), job.number(last)};
    std::sort(ends.begin(), ends.end());
    tied_ = std::make_unique<Communicator>(tape_, "embedding", ends, world_stream_);
  }
}

void StageProgram::make_chunks() {
  for (std::int64_t chunk = 0; chunk < job_.pipeline.chunks; ++chunk) {
    const StageLayers& layers = layers_of(chunk);
    const std::size_t before = tape_.parameters().size();
    chunks_.push_back(std::make_unique<Transformer>(tape_, job_.model, job_.recipe,
                                                    ModelPart{layers.first, layers.count, layers.embedding, layers.loss,
                                                              &parallel_, [this, chunk](std::int64_t part) {
                                                                if (gradients_->is_sharded())
                                                                  gradients_->sharded(chunk).about_to_run(part);
                                                                gathers_->about_to_run(chunk, part);
                                                              }}));
    std::vector<Parameter*> own;
    for (std::size_t i = before; i < tape_.parameters().size(); ++i)
      if (tape_.parameters()[i]->value.requires_gradient()) own.push_back(tape_.parameters()[i].get());
    parameters_.push_back(std::move(own));
  }
  // The linear layers of Megatron-LM gather into one buffer for all (get_global_memory_buffer).
  if (!parallel_.by_tokens() || job_.recipe.parallel.framework == ParallelFramework::torchtitan) return;
  const Shape whole = tensor_.gathered(chunks_.front()->message_shape());
  parallel_.gather_buffer = tape_.permanent("gathered tokens", whole, parameter_type(job_.recipe.precision),
                                            StorageKind::communication_buffer);
}

// torch's PipelineStage makes its receive buffers before the first step, one for each micro-batch, and keeps them
// (torch/distributed/pipelining/stage.py of torch 2.5 to 2.9; 2.15 makes one when the receive is posted).
void StageProgram::make_receive_buffers() {
  if (!is_torchtitan() || job_.pipeline.ranks == 1) return;
  const auto make = [this](const char* label) {
    return tape_.permanent(label, chunks_.front()->message_shape(), parameter_type(job_.recipe.precision),
                           StorageKind::communication_buffer);
  };
  const std::int64_t all = std::max(job_.step_microbatches, job_.pipeline.microbatches);
  kept_inputs_.resize(static_cast<std::size_t>(job_.pipeline.chunks));
  kept_gradients_.resize(kept_inputs_.size());
  for (std::int64_t chunk = 0; chunk < job_.pipeline.chunks; ++chunk)
    for (std::int64_t k = 0; k < all; ++k) {
      if (!is_first(chunk)) kept_inputs_[static_cast<std::size_t>(chunk)].push_back(make("received"));
      if (!is_last(chunk)) kept_gradients_[static_cast<std::size_t>(chunk)].push_back(make("received gradient"));
    }
}

const Tensors& StageProgram::kept_of(const std::vector<Tensors>& kept, std::int64_t chunk) {
  static const Tensors none;
  return kept.empty() ? none : kept[static_cast<std::size_t>(chunk)];
}

Tensor StageProgram::receive_buffer(const char* label, const Tensors& kept, std::int64_t microbatch) {
  return kept.empty() ? message_buffer(label) : kept[static_cast<std::size_t>(microbatch) % kept.size()].detached();
}

bool StageProgram::sends_parts() const {
  const ModelParallel& p = job_.recipe.parallel;
  const bool megatron = p.framework == ParallelFramework::megatron;
  return p.tensor > 1 && !p.sequence_parallel && p.pipeline > 1 &&
         (is_deepspeed() ? p.pipe_partitioned : megatron && p.scatter_gather_tensors);
}

Tensor StageProgram::message_buffer(const char* label) {
  const Shape whole = chunks_.front()->message_shape();
  Tensor t = tape_.make(label, sends_parts() ? parts_.part_shape(whole) : whole, parameter_type(job_.recipe.precision));
  tape_.trace().storages[t.storage->id()].kind = StorageKind::communication_buffer;
  return t;
}

// The first rank of a tensor-parallel group reads the data and sends it to the others; in torchtitan each reads it.
Tensor StageProgram::load(const char* label, DataType type) {
  const std::int64_t sequence = job_.recipe.sequence ? job_.recipe.sequence : job_.model.longest;
  const Tensor t = tape_.make(label, {job_.recipe.batch, sequence}, type);
  tape_.trace().storages[t.storage->id()].kind = StorageKind::input;
  Op copy;
  copy.kind = OpKind::copy;
  copy.from = tape_.trace().place("host");
  copy.to = tape_.trace().place("hbm");
  copy.bytes = t.bytes();
  const Tensor* const one[] = {&t};
  tape_.append(copy, "aten::copy_", {}, one);
  if (!is_torchtitan()) tensor_.broadcast(t);
  return t;
}

// Megatron-LM's get_batch_on_this_tp_rank reads positions and the loss' mask, too, which are the same for all sequences.
StageProgram::Batch StageProgram::load_batch(const StageLayers& layers) {
  const bool all = job_.recipe.parallel.framework == ParallelFramework::megatron;
  Batch batch;
  if (layers.embedding) batch.words = load("words", DataType::int64);
  if (layers.loss) batch.targets = load("targets", DataType::int64);
  if (layers.loss && all) batch.mask = load("loss mask", DataType::fp32);
  if (layers.embedding && all) batch.positions = load("positions", DataType::int64);
  return batch;
}

PassPlace& StageProgram::begin_place(const PipelinePass& pass, OpId load) {
  places_.push_back({pass, load, next_op(), 0});
  return places_.back();
}

// Policies that rewrite one pass for all need to know where it ends.
void StageProgram::end_pass() {
  if (is_torchtitan() && !is_alone_) tape_.mark(kPassEndMark);
}

void StageProgram::forward(const PipelinePass& pass, Tensor received) {
  tape_.phase = Phase::forward;
  const OpId entered = next_op();
  gathers_->begin_forward(forward_passes_++, forward_);
  if (form_of(pass) == PassForm::one_kernel) return forward_folded(pass, std::move(received));
  if (form_of(pass) == PassForm::mark) return forward_marked(pass, std::move(received));
  tape_.mark(std::string(kForwardMark) + std::to_string(stage_of(pass.chunk)));
  const OpId load_begins = next_op();
  InFlight& flight = flight_[key(pass)];
  const StageLayers& layers = layers_of(pass.chunk);
  Batch batch = load_batch(layers);
  if (received && sends_parts()) received = parts_.whole_of(received, chunks_.front()->message_shape());
  if (received) {
    flight.received = std::make_unique<Parameter>();
    flight.received->name = "received";
    flight.received->value = received;
    auto leaf = std::make_shared<GradientFunction>();
    leaf->sequence = std::numeric_limits<std::uint64_t>::max();
    leaf->leaf = flight.received.get();
    leaf->results.push_back({received.shape, received.type});
    received.function = leaf;
    received.output = 0;
  }
  PassPlace& place = begin_place(pass, load_begins);
  place.entered = entered;
  if (received) place.received = received.storage->id();
  flight.output = chunks_[static_cast<std::size_t>(pass.chunk)]->run_part(std::move(received), batch.words, batch.targets);
  if (layers.loss && job_.recipe.accumulation > 1) flight.output = div_number(tape_, flight.output);
  batch = {};
  if (gradients_->is_sharded()) gradients_->sharded(pass.chunk).end_forward();
  end_pass();
  place.end = next_op();
  place.result = flight.output.storage->id();
  place.left = next_op();
  if (!sends_parts() || !is_deepspeed() || is_last(pass.chunk)) return;
  flight.part = parts_.part_of(flight.output);
  flight.output.storage.reset();
}

// Megatron-LM keeps of what it has sent one element, for the autograd engine (deallocate_output_tensor).
void StageProgram::drop_output(const PipelinePass& pass) {
  if (job_.recipe.parallel.framework != ParallelFramework::megatron || !job_.recipe.parallel.deallocate_outputs) return;
  if (!is_last(pass.chunk)) output_of(pass).storage.reset();
}

void StageProgram::backward(const PipelinePass& pass, Tensor gradient) {
  if (form_of(pass) == PassForm::one_kernel) return backward_folded(pass, std::move(gradient));
  if (form_of(pass) == PassForm::mark) return backward_marked(pass, std::move(gradient));
  tape_.mark(std::string(kBackwardMark) + std::to_string(stage_of(pass.chunk)));
  InFlight& flight = flight_.at(key(pass));
  const OpId entered = next_op();
  if (flight.received) flight.received->value.reset();
  PassPlace& place = begin_place(pass, next_op());
  place.entered = entered;
  if (gradient) place.received = gradient.storage->id();
  gradients_->begin_pass(pass.chunk, is_last_microbatch(pass));
  if (!is_last(pass.chunk)) assert(gradient);
  Tensor output;  // restored, though nobody reads it
  if (sends_parts() && gradient) {
    tape_.phase = Phase::backward;
    if (flight.part) output = parts_.whole_of(flight.part, chunks_.front()->message_shape());
    gradient = parts_.whole_of(gradient, chunks_.front()->message_shape());
  }
  tape_.backward(flight.output, std::move(gradient));
  tape_.phase = Phase::backward;  // until a forward pass begins
  flight.output.reset();
  flight.part.reset();
  end_pass();
  place.end = place.left = next_op();
  note_parameter_gradients(place);
  if (!flight.received || !flight.received->gradient) return;
  place.result = flight.received->gradient.storage->id();
  tape_.trace().storages[place.result].kind = StorageKind::communication_buffer;
}

StageProgram::Transfers StageProgram::one(PipelineMessage message, bool send, Tensor tensor) {
  Transfers transfers;
  transfers.push_back({message, send, std::move(tensor)});
  return transfers;
}

StageProgram::Transfers StageProgram::receive_input(const PipelinePass& pass) {
  if (is_first(pass.chunk)) return {};
  tape_.phase = Phase::forward;
  return one({false, stage_of(pass.chunk) - 1, pass.microbatch}, false,
             receive_buffer("received", kept_of(kept_inputs_, pass.chunk), pass.microbatch));
}

StageProgram::Transfers StageProgram::send_output(const PipelinePass& pass) {
  if (is_last(pass.chunk)) return {};
  const InFlight& flight = flight_.at(key(pass));
  const Tensor sent = flight.part ? flight.part : sends_parts() ? parts_.part_of(flight.output) : flight.output;
  return one({false, stage_of(pass.chunk), pass.microbatch}, true, sent.detached());
}

StageProgram::Transfers StageProgram::receive_gradient(const PipelinePass& pass) {
  if (is_last(pass.chunk)) return {};
  tape_.phase = Phase::backward;
  return one({true, stage_of(pass.chunk), pass.microbatch}, false,
             receive_buffer("received gradient", kept_of(kept_gradients_, pass.chunk), pass.microbatch));
}

StageProgram::Transfers StageProgram::send_gradient(const PipelinePass& pass) {
  const auto flight = flight_.extract(key(pass));
  if (is_first(pass.chunk)) return {};
  const Tensor whole = flight.mapped().received->gradient;
  return one({true, stage_of(pass.chunk) - 1, pass.microbatch}, true, sends_parts() ? parts_.part_of(whole) : whole);
}

void StageProgram::begin() {
  gradients_ = std::make_unique<GradientBuffers>(tape_, job_, rank_, data_, parameters_, tensor_);
  gathers_ = std::make_unique<DeferredGather>(tape_, job_, rank_, data_, *gradients_);
  for (const auto& own : parameters_) all_parameters_.insert(all_parameters_.end(), own.begin(), own.end());
  const std::uint32_t free = job_.pipeline.ranks > 1 ? messages_.first_free_rendezvous() : kNoRendezvous;
  update_ = std::make_unique<ParallelUpdate>(tape_, job_, RankGroups{tensor_, data_, world_, tied_.get(), free},
                                             *gradients_, all_parameters_);
  tape_.begin_step(job_.model.name);
  tape_.phase = Phase::forward;
}

StageTrace StageProgram::finish() {
  for (Parameter* p : all_parameters_) p->gradient.reset();
  if (gradients_->is_sharded())
    for (std::int64_t chunk = 0; chunk < job_.pipeline.chunks; ++chunk) gradients_->sharded(chunk).drop_gradients();
  chunks_.clear();
  StageTrace stage{{}, std::move(places_)};
  if (form_ == PassForm::one_kernel) {
    stage.peak = peak_of_lives();
    stage.allocator_calls = std::move(tape_.allocator_calls);
  }
  stage.trace = std::move(tape_).finish();
  if (form_ == PassForm::one_kernel) stage.trace.storages.clear();
  if (form_ == PassForm::mark) stage.lives = std::move(lives_);
  return stage;
}

void StageProgram::run_step() {
  for (const PipelinePass& pass : pipeline_order(job_.recipe.parallel.schedule, job_.pipeline, rank_))
    (pass.backward ? backward_ : forward_).push_back(pass);
  begin();
  gathers_->begin_step();
  gradients_->begin_step();
  run_schedule();
  tape_.mark(kUpdateMark);
  update_->run();
}

StageTrace StageProgram::write(std::vector<FoldedChunk> folded) && {
  folded_ = std::move(folded);
  if (!folded_.empty()) {
    constexpr std::int64_t kOpsOfPass = 14;  // about, with its messages
    form_ = PassForm::one_kernel;
    tape_.lives = &lives_;
    tape_.trace().ops.reserve(
        static_cast<std::size_t>(2 * job_.pipeline.microbatches * job_.pipeline.chunks * kOpsOfPass));
  }
  run_step();
  StageTrace stage = finish();
  if (rank_ != 0) return stage;
  // Of the whole job, counted once: the other ranks of a pipeline work on the same samples.
  const Recipe& r = job_.recipe;
  Trace& trace = stage.trace;
  trace.samples_per_step = static_cast<double>(r.batch * r.accumulation * job_.data());
  trace.tokens_per_step = trace.samples_per_step * static_cast<double>(r.sequence ? r.sequence : job_.model.longest);
  return stage;
}

Trace stage_program(const ParallelJob& job, std::int64_t rank) { return StageProgram(job, rank).write().trace; }

}  // namespace memwall
