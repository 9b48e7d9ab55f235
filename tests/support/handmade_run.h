// Runs made by hand, for tests of what is computed from a run: ops with the times and
// causes that the test states, in microseconds, on the machine of round numbers.
#pragma once

#include <string_view>

#include "traces/run/run.h"

namespace memwall {

class HandmadeRun {
 public:
  // One thread "main", streams 0 "compute", 1 "copy", 2 "communication", 3 "storage".
  HandmadeRun();

  // An op of the thread; its call lasts from `begin` to `end`, right after `host_gap`.
  // Its cause is the op before it.
  OpId host(OpKind kind, std::string_view name, double begin, double end);
  // The same with work on `stream` from `start` to `finish`, begun because of `reason`.
  OpId device(OpKind kind, std::string_view name, std::uint16_t stream, double begin, double end, double start,
              double finish, WaitReason reason = WaitReason::launch, OpId cause = kNoOp);
  // The call of `op` returned when it did because of `cause`.
  void waited(OpId op, WaitReason reason, OpId cause);
  void step(std::string_view name, OpId first, OpId last);

  Op& op(OpId id) { return run.trace.edit().ops[id]; }
  OpRecord& record(OpId id) { return run.result.records[id]; }
  // Sets the end of everything and the results of steps. Call it last.
  Run finish();

  Run run;

 private:
  OpId previous_ = kNoOp;
};

}  // namespace memwall
