// What the simulator says of a copy under opposite traffic: asked of the engine itself, which shares the
// links, not of a formula beside it.
#include <cmath>

#include "sim/engine/simulation.h"
#include "sim/trace/trace_builder.h"
#include "validate/calibrate/fitting.h"

namespace memwall {

double duplex_copy_seconds(const Machine& machine, const Pricer& pricer, double bytes, bool to_device) {
  constexpr int kOpposite = 32;  // keep the other direction busy until the copy has ended
  TraceBuilder builder;
  builder.trace().name = "duplex copies";
  builder.add_thread("main");
  const std::uint16_t stream = builder.add_stream("copy", StreamRole::copy);
  const std::uint16_t opposite = builder.add_stream("opposite", StreamRole::copy);
  const std::uint8_t hbm = builder.trace().place("hbm"), host = builder.trace().place("host");
  const auto copy = [&](std::uint16_t on, bool inward) {
    Op op;
    op.kind = OpKind::copy;
    op.added = true;  // it contends with everything
    op.stream = on;
    op.bytes = std::llround(bytes);
    op.from = inward ? host : hbm;
    op.to = inward ? hbm : host;
    op.duration = pricer.copy(inward ? "host" : "hbm", inward ? "hbm" : "host", op.bytes, false);
    return builder.append(op);
  };
  const OpId measured = copy(stream, to_device);
  for (int i = 0; i < kOpposite; ++i) copy(opposite, !to_device);
  const SimulationResult result = simulate(std::move(builder).finish(), machine, {});
  return to_seconds(result.records[measured].end - result.records[measured].start);
}

}  // namespace memwall
