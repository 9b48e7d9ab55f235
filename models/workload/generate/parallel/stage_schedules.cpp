// In which order a rank runs its passes and exchanges their messages, by framework.
#include <map>
#include <tuple>
#include <utility>

#include "models/workload/generate/parallel/pipeline_actions.h"
#include "models/workload/generate/parallel/stage_program.h"

namespace memwall {

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
  const Events events = messages_.start(out, in);
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
  const Transfers out = send_gradient(pass);
  const auto sent = static_cast<std::ptrdiff_t>(out.size());
  const Transfers in = next_gradient(k);
  const Events events = messages_.start(out, in);
  messages_.wait(std::exchange(leaving_, {}));
  left_.reset();
  if (wait) {
    messages_.wait(events);
  } else {
    leaving_.assign(events.begin(), events.begin() + sent);
    if (sent > 0) left_ = out.front().tensor;
    coming.assign(events.begin() + sent, events.end());
  }
  put(output_gradients_, in);
}

// torch's _PipelineScheduleRuntime. Messages are not waited for where they are issued: what comes in, before the pass
// that reads it; what has been sent lives until it is waited for.
void StageProgram::run_actions() {
  using Kind = PipelineAction::Kind;
  struct Pending {
    Transfers transfers;
    Events events;
  };
  std::map<std::tuple<Kind, std::int64_t, std::int64_t>, Pending> pending;
  const auto message = [&](const PipelineAction& a, Transfers transfers) {
    Events events = messages_.start(transfers);
    pending[{a.kind, a.stage, a.microbatch}] = {std::move(transfers), std::move(events)};
  };
  const auto waited_for = [&](Kind kind, const PipelineAction& a) {
    const auto found = pending.find({kind, a.stage, a.microbatch});
    if (found == pending.end()) return Tensor();
    messages_.wait(found->second.events);
    Tensor tensor = tensor_of(found->second.transfers);
    pending.erase(found);
    return tensor;
  };
  const std::vector<std::vector<PipelineAction>> all = pipeline_actions(job_.pipeline);
  for (const PipelineAction& a : all[static_cast<std::size_t>(rank_)]) {
    const std::int64_t chunk = a.stage / job_.pipeline.ranks;
    const PipelinePass there{false, chunk, a.microbatch}, back{true, chunk, a.microbatch};
    switch (a.kind) {
      case Kind::unshard:
        if (gradients_->is_sharded()) gradients_->sharded(chunk).unshard();
        break;
      case Kind::forward:
        forward(there, waited_for(Kind::receive_input, a));
        break;
      case Kind::backward:
        backward(back, waited_for(Kind::receive_gradient, a));
        if (a.stage == 0) flight_.erase(key(back));  // it sends no gradient
        break;
      case Kind::reduce_gradients:
        gradients_->start(chunk);
        break;
      case Kind::send_output:
        message(a, send_output(there));
        break;
      case Kind::receive_input:
        message(a, receive_input(there));
        break;
      case Kind::send_gradient:
        message(a, send_gradient(back));
        break;
      case Kind::receive_gradient:
        message(a, receive_gradient(back));
        break;
      case Kind::wait_for_output:
        waited_for(Kind::send_output, a);
        break;
      case Kind::wait_for_gradient:
        waited_for(Kind::send_gradient, a);
        break;
      case Kind::reshard:             // gradients have been reduced, and parameters have gone with them
      case Kind::wait_for_reduction:  // it has been
        break;
    }
  }
}

void StageProgram::run_schedule() {
  const ModelParallel& p = job_.recipe.parallel;
  if (job_.pipeline.in_rounds && job_.pipeline.chunks > 1) return run_actions();
  if (job_.pipeline.chunks > 1) return run_interleaved();
  if (p.schedule == PipelineSchedule::gpipe) return run_apart();
  if (p.framework == ParallelFramework::deepspeed && job_.pipeline.ranks > 1) return run_deepspeed();
  run_plain();
}

}  // namespace memwall
