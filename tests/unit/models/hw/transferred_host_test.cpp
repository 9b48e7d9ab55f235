// Does host time go to another machine by what was measured alike on both, and by nothing else?
#include "models/hw/transferred_host.h"

#include <gtest/gtest.h>

#include "models/hw/machine_file.h"
#include "sim/trace/trace_builder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Trace step_of(OpKind kind) {
  TraceBuilder b;
  b.add_thread("main");
  b.add_stream("compute", StreamRole::compute);
  Op op;
  op.kind = kind, op.host_gap = microseconds(100), op.host_cost = microseconds(10);
  for (const Phase phase : {Phase::forward, Phase::backward, Phase::optimizer}) {
    op.phase = phase;
    b.append(op);
  }
  return std::move(b).finish();
}

TEST(TransferredHost, CallsGoByTheirRatioAndTheFrameworksTimeStays) {
  HostCosts from, to;
  from.launch = microseconds(8), to.launch = microseconds(4);
  from.eager_forward = microseconds(9), to.eager_forward = microseconds(15);
  from.eager_backward = microseconds(6), to.eager_backward = microseconds(18);
  Trace t = step_of(OpKind::kernel);
  transfer_host_time(t, from, to);
  for (const Op& op : t.ops) {
    EXPECT_EQ(op.host_gap, microseconds(100));
    EXPECT_EQ(op.host_cost, microseconds(5));
  }
  Trace unknown = step_of(OpKind::copy);
  transfer_host_time(unknown, from, to);
  EXPECT_EQ(unknown.ops[0].host_cost, microseconds(10)) << "neither file says what a copy's call costs";
}

// The captures of the V100 are of light programs, those of the A100 of heavy ones.
TEST(TransferredHost, AnA100sHostIsNotSlowerThanAV100s) {
  Trace t = step_of(OpKind::kernel);
  transfer_host_time(t, load_machine("v100-sxm2-16gb").host, load_machine("a100-sxm-80gb").host);
  for (const Op& op : t.ops) EXPECT_LE(op.host_gap + op.host_cost, microseconds(110));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
