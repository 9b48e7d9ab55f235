#include "sim/trace/scale.h"

#include <cmath>
#include <string>
#include <vector>

#include "sim/error.h"
#include "sim/trace/rendezvous.h"
#include "sim/trace/ranks.h"

namespace memwall {
namespace {

double collective_factor(const ScaleFactors& factors, bool met) {
  return factors.collectives.value_or(met ? 1 : factors.kernels);
}

// `begins`: the op's gap is when its rank's program begins, not work.
void scale(Op& op, const ScaleFactors& factors, bool met, bool begins) {
  if (!op.placed && !begins) op.host_gap = scaled_time(op.host_gap, factors.host);
  op.host_cost = scaled_time(op.host_cost, factors.host);
  switch (op.kind) {
    case OpKind::copy:
    case OpKind::storage_io:
      op.duration = scaled_time(op.duration, factors.copies);
      break;
    case OpKind::host_work:
      op.duration = scaled_time(op.duration, factors.host);
      break;
    case OpKind::collective:
      op.duration = scaled_time(op.duration, collective_factor(factors, met));
      break;
    default:
      op.duration = scaled_time(op.duration, factors.kernels);
  }
}

// The index of a rank by its number.
std::size_t index_of_rank(const Trace& trace, std::uint32_t number) {
  std::string numbers;
  for (std::size_t i = 0; i < trace.rank_table.size(); ++i) {
    if (trace.rank_table[i].number == number) return i;
    numbers += (numbers.empty() ? "" : ", ") + std::to_string(trace.rank_table[i].number);
  }
  throw UsageError("Rank " + std::to_string(number) + " cannot be scaled: trace '" + trace.name + "' holds " +
                   (numbers.empty() ? "one rank, of which no number is known." : "the ranks " + numbers + "."));
}

}  // namespace

Trace scaled(Trace trace, const ScaleFactors& factors) {
  const RendezvousTable rendezvous(trace);
  const std::size_t only = factors.rank ? index_of_rank(trace, *factors.rank) : 0;
  std::vector<bool> begun(trace.threads.size(), trace.rank_table.empty());
  for (Op& op : trace.ops) {
    const bool begins = !op.placed && op.thread < begun.size() && !begun[op.thread];
    if (begins) begun[op.thread] = true;
    if (!factors.rank || rank_of(trace, op) == only)
      scale(op, factors, rendezvous.of(op) != RendezvousTable::kNone, begins && op.kind != OpKind::hand_over);
  }
  return trace;
}

}  // namespace memwall
