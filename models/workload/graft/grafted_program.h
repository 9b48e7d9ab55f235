// The order of the grafted program's lines, and the host time between them. Internal to graft.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "models/workload/graft/line_pairs.h"
#include "sim/trace/trace.h"

namespace memwall {

// One op of the result: measured, of the complete step, or both.
struct GraftedLine {
  OpId measured = kNoOp, complete = kNoOp;
  std::uint32_t pair = 0xffffffff;  // index of its pair, or none
  bool first_of_pair = true, last_of_pair = true;
  std::uint16_t thread = 0;  // of the measured program
  Duration host_gap{}, host_cost{};
};

struct GraftedOrder {
  const std::vector<LinePair>& pairs;
  std::vector<bool> stays;             // by measured op: an allocation or a free that is in the result, too
  std::vector<bool> left_out;          // by op of the complete step: it is not
  std::vector<std::uint16_t> threads;  // by thread of the complete step: the measured one
};

// The measured lines in their order, and between them what the complete step has alone: allocations and frees, and
// lines of the device without a partner.
std::vector<GraftedLine> grafted_program(const Trace& measured, const Trace& complete, const GraftedOrder& order);

}  // namespace memwall
