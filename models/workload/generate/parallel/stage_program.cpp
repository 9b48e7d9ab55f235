#include "models/workload/generate/parallel/stage_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <utility>

#include "models/workload/generate/network.h"
#include "models/workload/generate/operators/operators.h"
#include "models/workload/generate/parallel/gradient_buffers.h"
#include "models/workload/generate/parallel/parallel_update.h"
#include "models/workload/generate/parallel/pipeline_messages.h"
#include "models/workload/generate/transformer.h"

namespace memwall {
namespace {

class StageProgram {
 public:
  StageProgram(const ParallelJob& job, std::int64_t rank);
  Trace write();

 private:
  // A micro-batch between its forward and its backward pass.
  struct InFlight {
    std::unique_ptr<Parameter> received;  // empty where the chunk has the embedding
    Tensor output;                        // without storage once it has been dropped
  };
  using Transfers = std::vector<PipelineTransfer>;
  using Events = PipelineMessages::Events;

  void make_chunks();
  std::int64_t stage_of(std::int64_t chunk) const { return chunk * job_.pipeline.ranks + rank_; }
  const StageLayers& layers_of(std::int64_t chunk) const {
    return job_.stages[static_cast<std::size_t>(stage_of(chunk))];
  }
  bool is_first(std::int64_t chunk) const { return stage_of(chunk) == 0; }
  bool is_last(std::int64_t chunk) const { return stage_of(chunk) + 1 == static_cast<std::int64_t>(job_.stages.size()); }

  // Passes.
  Tensor message_buffer(const char* label);
  void forward(const PipelinePass& pass, Tensor received);
  Tensor load(const char* label, DataType type);
  void backward(const PipelinePass& pass, Tensor gradient);
  Tensor& output_of(const PipelinePass& pass) { return flight_.at(key(pass)).output; }
  void drop_output(const PipelinePass& pass);

  // Transfers of a pass; none where there is no neighbour.
  Transfers receive_input(const PipelinePass& pass);
  Transfers send_output(const PipelinePass& pass);
  Transfers receive_gradient(const PipelinePass& pass);
  Transfers send_gradient(const PipelinePass& pass);

  // Schedules.
  void run_plain();
  void run_apart();
  void run_deepspeed();
  void run_schedule();
  void run_interleaved();
  void backward_interleaved(std::int64_t k, bool wait, Events& coming);
  void send_and_receive(const Transfers& out, const Transfers& in, bool wait_for_both, Events& coming);
  Transfers next_input(std::int64_t k);
  Transfers next_gradient(std::int64_t k);
  void put(std::vector<std::deque<Tensor>>& queues, const Transfers& received);
  static Tensor take(std::vector<std::deque<Tensor>>& queues, std::int64_t chunk);
  void start_reduction(std::int64_t k);

  static std::pair<std::int64_t, std::int64_t> key(const PipelinePass& pass) { return {pass.chunk, pass.microbatch}; }
  static Tensor tensor_of(const Transfers& transfers) { return transfers.empty() ? Tensor() : transfers.front().tensor; }

  const ParallelJob& job_;
  std::int64_t rank_;
  Tape tape_;
  std::uint16_t tensor_stream_, data_stream_, world_stream_;
  Communicator tensor_, data_, world_;
  std::unique_ptr<Communicator> tied_;
  TensorParallel parallel_;
  std::vector<std::unique_ptr<Transformer>> chunks_;
  std::vector<std::vector<Parameter*>> parameters_;
  PipelineMessages messages_;
  std::unique_ptr<GradientBuffers> gradients_;
  std::map<std::pair<std::int64_t, std::int64_t>, InFlight> flight_;
  // Interleaved: all passes by number; what has been received and not used, by chunk; the gradient that was sent last.
  std::vector<PipelinePass> forward_, backward_;
  std::vector<std::deque<Tensor>> inputs_, output_gradients_;
  Tensor left_;
  Events leaving_;
};

std::vector<std::uint32_t> all_ranks(const ParallelJob& job) {
  std::vector<std::uint32_t> members(job.world());
  for (std::uint32_t i = 0; i < job.world(); ++i) members[i] = i;
  return members;
}

// A stream for communication, or the compute stream where a group is of one and has none.
std::uint16_t stream_for(Tape& tape, const char* name, std::int64_t ranks) {
  return ranks == 1 ? std::uint16_t{0} : tape.builder().add_stream(name, StreamRole::communication);
}

StageProgram::StageProgram(const ParallelJob& job, std::int64_t rank)
    : job_(job),
      rank_(rank),
      tape_(job.model.name),
      tensor_stream_(stream_for(tape_, "tensor parallel", job.tensor())),
      data_stream_(stream_for(tape_, "data parallel", job.data())),
      world_stream_(stream_for(tape_, "all ranks", job.world())),
      tensor_(tape_, "tensor parallel", job.grid.group(job.number(rank), "tp"), tensor_stream_),
      data_(tape_, "data parallel", job.grid.group(job.number(rank), "dp"), data_stream_),
      world_(tape_, "all ranks", all_ranks(job), world_stream_),
      parallel_{tensor_, job.recipe.parallel.sequence_parallel},
      messages_(tape_, job, rank),
      inputs_(static_cast<std::size_t>(job.pipeline.chunks)),
      output_gradients_(static_cast<std::size_t>(job.pipeline.chunks)) {
  tape_.sums_in_place = job.recipe.sums_in_place;
  make_chunks();
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
    chunks_.push_back(std::make_unique<Transformer>(
        tape_, job_.model, job_.recipe,
        ModelPart{layers.first, layers.count, layers.embedding, layers.loss, &parallel_}));
    std::vector<Parameter*> own;
    for (std::size_t i = before; i < tape_.parameters().size(); ++i) own.push_back(tape_.parameters()[i].get());
    parameters_.push_back(std::move(own));
  }
  // The linear layers of Megatron-LM gather into one buffer for all (get_global_memory_buffer).
  if (!parallel_.by_tokens() || job_.recipe.parallel.framework == ParallelFramework::torchtitan) return;
  const Shape whole = tensor_.gathered(chunks_.front()->message_shape());
  parallel_.gather_buffer = tape_.permanent("gathered tokens", whole, parameter_type(job_.recipe.precision),
                                            StorageKind::communication_buffer);
}

Tensor StageProgram::message_buffer(const char* label) {
  Tensor t = tape_.make(label, chunks_.front()->message_shape(), parameter_type(job_.recipe.precision));
  tape_.trace().storages[t.storage->id()].kind = StorageKind::communication_buffer;
  return t;
}

// The first rank of a tensor-parallel group reads the data and sends it to the others.
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
  tensor_.broadcast(t);
  return t;
}

void StageProgram::forward(const PipelinePass& pass, Tensor received) {
  tape_.phase = Phase::forward;
  InFlight& flight = flight_[key(pass)];
  const StageLayers& layers = layers_of(pass.chunk);
  Tensor words, targets;
  if (layers.embedding) words = load("words", DataType::int64);
  if (layers.loss) targets = load("targets", DataType::int64);
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
  flight.output = chunks_[static_cast<std::size_t>(pass.chunk)]->run_part(std::move(received), words, targets);
  if (layers.loss && job_.recipe.accumulation > 1) flight.output = div_number(tape_, flight.output);
}

// Megatron-LM keeps of what it has sent one element, for the autograd engine (deallocate_output_tensor).
void StageProgram::drop_output(const PipelinePass& pass) {
  if (job_.recipe.parallel.framework != ParallelFramework::megatron || !job_.recipe.parallel.deallocate_outputs) return;
  if (!is_last(pass.chunk)) output_of(pass).storage.reset();
}

void StageProgram::backward(const PipelinePass& pass, Tensor gradient) {
  InFlight& flight = flight_.at(key(pass));
  if (flight.received) flight.received->value.reset();
  gradients_->begin_pass(pass.chunk, pass.microbatch + 1 == job_.pipeline.microbatches);
  if (!is_last(pass.chunk)) assert(gradient);
  tape_.backward(flight.output, std::move(gradient));
  flight.output.reset();
  if (flight.received && flight.received->gradient)
    tape_.trace().storages[flight.received->gradient.storage->id()].kind = StorageKind::communication_buffer;
}

StageProgram::Transfers StageProgram::receive_input(const PipelinePass& pass) {
  if (is_first(pass.chunk)) return {};
  tape_.phase = Phase::forward;
  return {{{false, stage_of(pass.chunk) - 1, pass.microbatch}, false, message_buffer("received")}};
}

StageProgram::Transfers StageProgram::send_output(const PipelinePass& pass) {
  if (is_last(pass.chunk)) return {};
  return {{{false, stage_of(pass.chunk), pass.microbatch}, true, output_of(pass).detached()}};
}

StageProgram::Transfers StageProgram::receive_gradient(const PipelinePass& pass) {
  if (is_last(pass.chunk)) return {};
  tape_.phase = Phase::backward;
  return {{{true, stage_of(pass.chunk), pass.microbatch}, false, message_buffer("received gradient")}};
}

StageProgram::Transfers StageProgram::send_gradient(const PipelinePass& pass) {
  const auto flight = flight_.extract(key(pass));
  if (is_first(pass.chunk)) return {};
  const Tensor gradient = flight.mapped().received->gradient;
  return {{{true, stage_of(pass.chunk) - 1, pass.microbatch}, true, gradient}};
}

// forward_backward_pipelining_without_interleaving; torch's Schedule1F1B makes the same calls.
void StageProgram::run_plain() {
  const std::int64_t m = job_.pipeline.microbatches;
  const std::int64_t warm_up = warm_up_passes(job_.recipe.parallel.schedule, job_.pipeline, rank_);
  const auto both = [](Transfers a, Transfers b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  };
  const auto f = [](std::int64_t k) { return PipelinePass{false, 0, k}; };
  const auto b = [](std::int64_t k) { return PipelinePass{true, 0, k}; };
  for (std::int64_t k = 0; k < warm_up; ++k) {
    Transfers in = receive_input(f(k));
    messages_.exchange(in);
    Tensor received = tensor_of(in);
    in.clear();
    forward(f(k), std::move(received));
    messages_.exchange(send_output(f(k)));
    drop_output(f(k));
  }
  Transfers in;
  if (warm_up < m) messages_.exchange(in = receive_input(f(warm_up)));
  for (std::int64_t k = 0; k < m - warm_up; ++k) {
    Tensor received = tensor_of(in);
    in.clear();
    forward(f(warm_up + k), std::move(received));
    Transfers gradient = receive_gradient(b(k));
    messages_.exchange(both(send_output(f(warm_up + k)), gradient));
    drop_output(f(warm_up + k));
    Tensor given = tensor_of(gradient);
    gradient.clear();
    backward(b(k), std::move(given));
    if (warm_up + k + 1 < m) in = receive_input(f(warm_up + k + 1));
    messages_.exchange(both(send_gradient(b(k)), in));
  }
  for (std::int64_t k = m - warm_up; k < m; ++k) {
    Transfers gradient = receive_gradient(b(k));
    messages_.exchange(gradient);
    Tensor given = tensor_of(gradient);
    gradient.clear();
    backward(b(k), std::move(given));
    messages_.exchange(send_gradient(b(k)));
  }
}

// All forward passes, then all backward passes, each message a call of its own (torch's ScheduleGPipe).
void StageProgram::run_apart() {
  for (const PipelinePass& pass : pipeline_order(job_.recipe.parallel.schedule, job_.pipeline, rank_)) {
    Transfers in = pass.backward ? receive_gradient(pass) : receive_input(pass);
    messages_.exchange(in);
    Tensor received = tensor_of(in);
    in.clear();
    pass.backward ? backward(pass, std::move(received)) : forward(pass, std::move(received));
    messages_.exchange(pass.backward ? send_gradient(pass) : send_output(pass));
  }
}

// TrainSchedule.steps: even ranks run forward in even slots, odd ranks in odd ones (../shared/spec/parallelism.md, 3.9).
void StageProgram::run_deepspeed() {
  const std::int64_t m = job_.pipeline.microbatches, p = job_.pipeline.ranks;
  const auto halved = [](std::int64_t n) { return n >= 0 ? n / 2 : -((1 - n) / 2); };
  const auto slot = [&](std::int64_t n) {
    const bool forward = n % 2 == rank_ % 2;
    if (forward) return PipelinePass{false, 0, halved(n) - rank_ / 2};
    return PipelinePass{true, 0, n % 2 == 0 ? halved(n) - p + (rank_ + 1) / 2 : halved(n - 1) - p + 1 + rank_ / 2};
  };
  const auto is_one = [m](const PipelinePass& pass) { return pass.microbatch >= 0 && pass.microbatch < m; };
  PipelinePass before{false, 0, -1};
  for (std::int64_t n = 0; n < 2 * (m + p - 1); ++n) {
    const PipelinePass now = slot(n);
    Transfers in;
    if (now.backward) {
      if (is_one(now)) messages_.exchange(in = receive_gradient(now));
      if (is_one(before)) messages_.exchange(send_output(before));
    } else {
      if (is_one(before)) messages_.exchange(send_gradient(before));
      if (is_one(now)) messages_.exchange(in = receive_input(now));
    }
    Tensor received = tensor_of(in);
    in.clear();
    if (is_one(now)) now.backward ? backward(now, std::move(received)) : forward(now, std::move(received));
    before = now;
  }
  if (is_one(before) && before.backward) messages_.exchange(send_gradient(before));
}

// recv_tensor_from_previous_stage: what arrives during pass k. The first rank is ahead of the last by p - 1 passes, and
// gets nothing behind the last chunk.
StageProgram::Transfers StageProgram::next_input(std::int64_t k) {
  const std::int64_t all = static_cast<std::int64_t>(forward_.size()), p = job_.pipeline.ranks;
  if (k + 1 >= all) return {};
  if (rank_ != 0) return receive_input(forward_[static_cast<std::size_t>(k + 1)]);
  if (k < p - 1) return {};
  PipelinePass from = forward_[static_cast<std::size_t>(k - (p - 1))];
  if (++from.chunk == job_.pipeline.chunks) return {};
  return receive_input(from);
}

StageProgram::Transfers StageProgram::next_gradient(std::int64_t k) {
  const std::int64_t all = static_cast<std::int64_t>(backward_.size()), p = job_.pipeline.ranks;
  if (k + 1 >= all) return {};
  if (rank_ + 1 != p) return receive_gradient(backward_[static_cast<std::size_t>(k + 1)]);
  if (k < p - 1) return {};
  PipelinePass from = backward_[static_cast<std::size_t>(k - (p - 1))];
  if (from.chunk-- == 0) return {};
  return receive_gradient(from);
}

void StageProgram::put(std::vector<std::deque<Tensor>>& queues, const Transfers& received) {
  for (const PipelineTransfer& t : received)
    queues[static_cast<std::size_t>((t.message.stage + (t.message.backward ? 0 : 1)) / job_.pipeline.ranks)].push_back(
        t.tensor);
}

Tensor StageProgram::take(std::vector<std::deque<Tensor>>& queues, std::int64_t chunk) {
  std::deque<Tensor>& queue = queues[static_cast<std::size_t>(chunk)];
  if (queue.empty()) return {};
  Tensor first = std::move(queue.front());
  queue.pop_front();
  return first;
}

// With align_grad_reduce a rank starts to reduce as many passes later as it is behind the first.
void StageProgram::start_reduction(std::int64_t k) {
  if (k < rank_) return;
  const PipelinePass& pass = backward_[static_cast<std::size_t>(k - rank_)];
  if (pass.microbatch + 1 == job_.pipeline.microbatches) gradients_->start(pass.chunk);
}

// What goes out and comes in by calls of their own; the first is waited for, or both. What is dropped afterwards has
// left.
void StageProgram::send_and_receive(const Transfers& out, const Transfers& in, bool wait_for_both, Events& coming) {
  Transfers all = out;
  all.insert(all.end(), in.begin(), in.end());
  const Events events = messages_.start(all);
  const auto sent = static_cast<std::ptrdiff_t>(out.size());
  messages_.wait({events.begin(), wait_for_both ? events.end() : events.begin() + sent});
  coming.clear();
  if (!wait_for_both) coming.assign(events.begin() + sent, events.end());
}

// forward_backward_pipelining_with_interleaving, overlap_p2p_comm: in warm-up and cool-down each exchange is waited for;
// in between, what comes in and gradients that go out overlap with the next pass.
void StageProgram::run_interleaved() {
  const auto all = static_cast<std::int64_t>(forward_.size());
  const std::int64_t warm_up = warm_up_passes(job_.recipe.parallel.schedule, job_.pipeline, rank_);
  Events inputs_coming, gradients_coming;
  Transfers in = receive_input(forward_.front());
  send_and_receive({}, in, true, inputs_coming);
  put(inputs_, in);
  for (std::int64_t k = 0; k < all; ++k) {
    const PipelinePass& pass = forward_[static_cast<std::size_t>(k)];
    messages_.wait(std::exchange(inputs_coming, {}));
    forward(pass, take(inputs_, pass.chunk));
    in = next_input(k);
    const bool in_warm_up = k + 1 < warm_up || (k + 1 == warm_up && warm_up == all);
    send_and_receive(send_output(pass), in, in_warm_up, inputs_coming);
    put(inputs_, in);
    in.clear();
    drop_output(pass);
    if (k + 1 == warm_up && warm_up < all) {
      const Transfers gradient = receive_gradient(backward_.front());
      gradients_coming = messages_.start(gradient);
      put(output_gradients_, gradient);
    }
    if (k >= warm_up) backward_interleaved(k - warm_up, false, gradients_coming);
  }
  if (warm_up == all) {
    const Transfers gradient = receive_gradient(backward_.front());
    send_and_receive({}, gradient, true, gradients_coming);
    put(output_gradients_, gradient);
  }
  for (std::int64_t k = all - warm_up; k < all; ++k) backward_interleaved(k, true, gradients_coming);
}

// A gradient that is sent is kept until the next one is: then it has been waited for.
void StageProgram::backward_interleaved(std::int64_t k, bool wait, Events& coming) {
  const PipelinePass& pass = backward_[static_cast<std::size_t>(k)];
  messages_.wait(std::exchange(coming, {}));
  backward(pass, take(output_gradients_, pass.chunk));
  start_reduction(k);
  Transfers all = send_gradient(pass);
  const auto sent = static_cast<std::ptrdiff_t>(all.size());
  const Transfers in = next_gradient(k);
  all.insert(all.end(), in.begin(), in.end());
  const Events events = messages_.start(all);
  messages_.wait(std::exchange(leaving_, {}));
  left_.reset();
  if (wait) {
    messages_.wait(events);
  } else {
    leaving_.assign(events.begin(), events.begin() + sent);
    if (sent > 0) left_ = all.front().tensor;
    coming.assign(events.begin() + sent, events.end());
  }
  put(output_gradients_, in);
}

void StageProgram::run_schedule() {
  const ModelParallel& p = job_.recipe.parallel;
  if (job_.pipeline.chunks > 1) return run_interleaved();
  if (p.schedule == PipelineSchedule::gpipe) return run_apart();
  if (p.framework == ParallelFramework::deepspeed && job_.pipeline.ranks > 1) return run_deepspeed();
  run_plain();
}

Trace StageProgram::write() {
  for (const PipelinePass& pass : pipeline_order(PipelineSchedule::one_f_one_b, job_.pipeline, rank_))
    (pass.backward ? backward_ : forward_).push_back(pass);
  gradients_ = std::make_unique<GradientBuffers>(tape_, job_, rank_, data_, parameters_);
  std::vector<Parameter*> all;
  for (const auto& own : parameters_) all.insert(all.end(), own.begin(), own.end());
  const std::uint32_t free = job_.pipeline.ranks > 1 ? messages_.first_free_rendezvous() : kNoRendezvous;
  ParallelUpdate update(tape_, job_, {tensor_, data_, world_, tied_.get(), free}, *gradients_, all);
  tape_.begin_step(job_.model.name);
  tape_.phase = Phase::forward;
  update.gather_in_forward();
  gradients_->begin_step();
  run_schedule();
  update.run();
  for (Parameter* p : all) p->gradient.reset();
  chunks_.clear();
  Trace trace = std::move(tape_).finish();
  if (rank_ != 0) return trace;
  // Of the whole job, counted once: the other ranks of a pipeline work on the same samples.
  const Recipe& r = job_.recipe;
  trace.samples_per_step = static_cast<double>(r.batch * r.accumulation * job_.data());
  trace.tokens_per_step = trace.samples_per_step * static_cast<double>(r.sequence ? r.sequence : job_.model.longest);
  return trace;
}

}  // namespace

Trace stage_program(const ParallelJob& job, std::int64_t rank) { return StageProgram(job, rank).write(); }

}  // namespace memwall
