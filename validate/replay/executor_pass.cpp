#include "validate/replay/executor_pass.h"

#include <algorithm>
#include <thread>
#include <utility>

namespace memwall {
namespace {

// Ends a thread because another one failed; never leaves this file.
struct OtherThreadFailed {};

}  // namespace

ReplayPass::ReplayPass(const Trace& schedule, const ContentPlan& contents, ReplayMemory& memory, Backend& backend)
    : trace_(schedule),
      contents_(contents),
      memory_(memory),
      backend_(backend),
      is_source_(schedule.ops.size(), false),
      done_(schedule.ops.size(), false) {
  std::vector<std::vector<OpId>> by_thread(schedule.threads.size());
  for (OpId id = 0; id < schedule.ops.size(); ++id) {
    by_thread[schedule.ops[id].thread].push_back(id);
    if (schedule.ops[id].kind == OpKind::hand_over) is_source_[schedule.ops[id].target] = true;
  }
  for (std::vector<OpId>& ops : by_thread)
    if (!ops.empty()) threads_.push_back(std::move(ops));
}

void ReplayPass::run(std::vector<OpTimes>& times) {
  // The first of them is this thread, so that a schedule of one thread starts none.
  std::vector<std::thread> others;
  try {
    for (std::size_t i = 1; i < threads_.size(); ++i)
      others.emplace_back([this, i, &times] { guarded(threads_[i], times); });
    backend_.start_clock();
  } catch (...) {
    const std::lock_guard<std::mutex> lock(mutex_);
    failed_ = true;
    failure_ = std::current_exception();
  }
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    started_ = true;
    changed_.notify_all();
  }
  if (!threads_.empty()) guarded(threads_[0], times);
  for (std::thread& other : others) other.join();
  if (failure_) std::rethrow_exception(failure_);
}

void ReplayPass::guarded(const std::vector<OpId>& ops, std::vector<OpTimes>& times) {
  try {
    wait_for_start();
    run_thread(ops, times);
  } catch (const OtherThreadFailed&) {
  } catch (...) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!failed_) failure_ = std::current_exception();
    failed_ = true;
    changed_.notify_all();
  }
}

void ReplayPass::wait_for_start() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return started_; });
  if (failed_) throw OtherThreadFailed();
}

void ReplayPass::run_thread(const std::vector<OpId>& ops, std::vector<OpTimes>& times) {
  for (const OpId id : ops) {
    OpTimes& time = times[id];
    time.host_start = backend_.now();
    execute(id);
    time.host_end = backend_.now();
    if (is_source_[id]) handed(id);
  }
}

void ReplayPass::handed(OpId id) {
  const std::lock_guard<std::mutex> lock(mutex_);
  done_[id] = true;
  changed_.notify_all();
}

void ReplayPass::hand_over(OpId source) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return done_[source] || failed_; });
  if (failed_) throw OtherThreadFailed();
}

void ReplayPass::execute(OpId id) {
  const Op& op = trace_.ops[id];
  switch (op.kind) {
    case OpKind::alloc:
      return memory_.alloc(id);
    case OpKind::free:
      return memory_.free(id);
    case OpKind::event_record:
      return backend_.record(op.target, op.stream);
    case OpKind::event_wait:
      return backend_.wait(op.target, op.stream);
    case OpKind::synchronize:
      return await(op);
    case OpKind::host_work:
      await(op);
      return backend_.host_work(id, op.bytes, operands(id));
    case OpKind::hand_over:
      return hand_over(op.target);
    default:
      if (runs_on_device(op.kind)) submit(id, op);
  }
}

void ReplayPass::submit(OpId id, const Op& op) {
  const std::vector<Operand> on = operands(id);
  if (op.kind == OpKind::kernel)
    backend_.kernel(id, op.stream, {op.operator_class, op.data_type, op.flops, op.bytes}, on);
  else if (op.kind == OpKind::collective)
    backend_.collective(id, op.stream, {op.duration, op.waves}, on);
  else if (op.kind == OpKind::memset)
    backend_.memset(id, op.stream, on[0], op.bytes);
  else if (op.kind == OpKind::copy)
    backend_.copy(id, op.stream, on[0], on[1], op.bytes);
  else
    backend_.storage_io(id, op.stream, on[0], on[1], op.bytes);
  if (op.wait_for != WaitFor::nothing) backend_.synchronize_stream(op.stream);
}

void ReplayPass::await(const Op& op) {
  if (op.wait_for == WaitFor::stream) backend_.synchronize_stream(op.stream);
  if (op.wait_for == WaitFor::event) backend_.synchronize_event(op.target);
  if (op.wait_for == WaitFor::device) await_device();
}

// Storage queues are none of the device's streams: it does not wait for them.
void ReplayPass::await_device() {
  const auto is_queue = [](const Stream& stream) { return stream.role == StreamRole::storage; };
  if (std::none_of(trace_.streams.begin(), trace_.streams.end(), is_queue)) return backend_.synchronize_device();
  for (std::size_t s = 0; s < trace_.streams.size(); ++s)
    if (!is_queue(trace_.streams[s])) backend_.synchronize_stream(static_cast<std::uint16_t>(s));
}

std::vector<Operand> ReplayPass::operands(OpId id) const {
  std::vector<Operand> found;
  const auto planned = contents_.operands(id);
  found.reserve(planned.size());
  for (const PlannedOperand& p : planned) found.push_back({memory_.buffer(id, p.storage, p.bytes), p.expected, p.made});
  return found;
}

}  // namespace memwall
