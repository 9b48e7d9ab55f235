#include "tests/support/sample.h"

#include "models/hw/machine_file.h"
#include "models/hw/transfer.h"
#include "tests/support/gpt_trace.h"

namespace memwall {

Trace sample_gpt_124m() {
  GptShape shape;
  shape.layers = 12;
  shape.hidden = 768;
  shape.heads = 12;
  shape.sequence = 1024;
  shape.batch = 8;
  shape.vocabulary = 50257;
  shape.steps = 2;
  shape.origin = Origin::modelled;
  shape.launch_cost = microseconds(6);
  shape.allocator_cost = microseconds(1);
  const Machine machine = load_machine("a100-sxm-40gb");
  Trace trace = transferred(gpt_step(shape), nullptr, machine);
  trace.name = "gpt_124m";
  trace.constants.launch_latency[0] = machine.host.launch_latency;
  trace.constants.stream_gap[0][0] = machine.host.stream_gap;
  trace.notes = {"Generated, not captured: nothing was measured, every duration is modelled."};
  return trace;
}

}  // namespace memwall
