// One pass through a schedule: the ops of every host thread in their order, each on a thread of its own.
#pragma once

#include <condition_variable>
#include <exception>
#include <mutex>
#include <span>
#include <vector>

#include "sim/trace/trace.h"
#include "validate/replay/backend.h"
#include "validate/replay/executor_contents.h"
#include "validate/replay/executor_memory.h"

namespace memwall {

class ReplayPass {
 public:
  // All must outlive it.
  ReplayPass(const Trace& schedule, const ContentPlan& contents, ReplayMemory& memory, Backend& backend);

  // Starts the clock, executes every op, and returns when the host threads are through; the device may still be
  // at work. Host times of every op are in `times`. Throws what the first failing op threw; the others are
  // then not waited for. Call it once.
  void run(std::vector<OpTimes>& times);

 private:
  void run_thread(const std::vector<OpId>& ops, std::vector<OpTimes>& times);
  void guarded(const std::vector<OpId>& ops, std::vector<OpTimes>& times);
  void execute(OpId id);
  void submit(OpId id, const Op& op);
  void await(const Op& op);
  void await_device();
  void hand_over(OpId source);
  void handed(OpId id);
  void wait_for_start();
  std::vector<Operand> operands(OpId id) const;

  const Trace& trace_;
  const ContentPlan& contents_;
  ReplayMemory& memory_;
  Backend& backend_;
  std::vector<std::vector<OpId>> threads_;  // those that have ops
  std::vector<bool> is_source_;             // by op: a hand-over waits for it
  std::mutex mutex_;                        // guards what follows
  std::condition_variable changed_;
  std::vector<bool> done_;  // by op; of sources only
  bool started_ = false, failed_ = false;
  std::exception_ptr failure_;
};

}  // namespace memwall
