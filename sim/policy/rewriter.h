// A rewriter turns one trace into another before anything is simulated: sharding,
// static checkpointing, planned offload. What it adds are ordinary ops, so the
// result can be saved, read, compared, simulated and executed on a real GPU.
#pragma once

#include <string>

#include "sim/machine/machine.h"
#include "sim/machine/pricer.h"
#include "sim/trace/trace.h"

namespace memwall {

// Rewriters run in this order, whatever the order of flags.
enum class RewriterKind : std::uint8_t {
  precision,
  batch,
  fusion,
  model_parallelism,
  recompute,
  sharding,
  offload,
  buckets
};
std::string_view to_string(RewriterKind kind);

class Rewriter {
 public:
  virtual ~Rewriter() = default;
  virtual RewriterKind kind() const = 0;
  // What the trace must know for this rewriter; the rest may be false.
  virtual Knowledge needs() const = 0;
  // A pure function. Added ops have Op::added set and an origin other than measured. A recomputed op
  // is not `added`: it stands in its original's stream, with its original's time, origin and overlap.
  // Appends to Trace::notes what it decided.
  // Throws UsageError with a sentence where the policy has no meaning for this trace.
  virtual Trace rewrite(const Trace& trace, const Machine& machine, const Pricer& pricer) const = 0;
};

}  // namespace memwall
