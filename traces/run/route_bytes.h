// What ops and a pager moved over each route of a run's machine.
#pragma once

#include <vector>

#include "traces/run/run.h"

namespace memwall {

// Sees ops in order, a block at a time; `run` outlives it.
class RouteBytes {
 public:
  explicit RouteBytes(const Run& run);
  void add(OpId first, OpId last);
  // By index into run.machine.one.routes: bytes of all ranks of the trace, each folded one once. Moves that need two
  // routes count on both.
  std::vector<Bytes> take();

 private:
  void add(int from, int to, bool pageable, Bytes bytes);
  void add_move(const MoveRecord& move);

  const Run& run_;
  std::vector<int> tier_of_place_;  // of one GPU's machine
  std::vector<int> tier_of_one_;    // by tier of all ranks: likewise
  std::vector<Bytes> bytes_;
};

// Of all ops.
std::vector<Bytes> route_bytes(const Run& run);

}  // namespace memwall
