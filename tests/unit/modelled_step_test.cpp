// Does a step that was measured nowhere get all its times from the machine's file, and one that was keep its own?
#include "models/hw/modelled_step.h"

#include <gtest/gtest.h>

#include "models/hw/machine_file.h"
#include "models/hw/pricer.h"
#include "sim/trace_builder.h"

namespace memwall {
namespace {

class ModelledStep : public ::testing::Test {
 protected:
  ModelledStep() : machine_(load_machine("h100-sxm-80gb")), prices_(make_pricer(machine_)) {
    builder_.add_thread("main");
    builder_.add_stream("compute", StreamRole::compute);
    builder_.trace().place("hbm");
  }
  OpId add(OpKind kind, Bytes bytes = 0, double flops = 0) {
    Op op;
    op.kind = kind;
    op.bytes = bytes;
    op.flops = flops;
    op.origin = Origin::modelled;
    op.from = builder_.trace().place("host");
    op.to = builder_.trace().place("hbm");
    return builder_.append(op);
  }
  Trace priced() { return modelled_on(builder_.trace(), machine_); }

  const Machine machine_;
  const std::unique_ptr<Pricer> prices_;
  TraceBuilder builder_;
};

TEST_F(ModelledStep, WorkIsPricedAndCallsCostWhatTheFileSays) {
  const OpId kernel = add(OpKind::kernel, 1 << 30, 1e12), small = add(OpKind::kernel),
             copy = add(OpKind::copy, 1 << 30), work = add(OpKind::host_work, 1 << 20),
             record = add(OpKind::event_record), mark = add(OpKind::mark);
  ASSERT_TRUE(measured_nowhere(builder_.trace()));
  const Trace t = priced();
  EXPECT_EQ(t.ops[kernel].duration, prices_->kernel(t.ops[kernel]));
  EXPECT_GT(t.ops[kernel].duration, microseconds(300)) << "a GiB at 3.35 TB/s at best";
  EXPECT_EQ(t.ops[small].duration, prices_->kernel(t.ops[small])) << "the shortest of its class";
  EXPECT_EQ(t.ops[copy].duration, prices_->copy("host", "hbm", 1 << 30, false));
  EXPECT_EQ(t.ops[work].duration, prices_->host_memory_work(1 << 20));
  EXPECT_EQ(t.ops[kernel].host_cost, machine_.host.launch);
  EXPECT_EQ(t.ops[copy].host_cost, machine_.host.copy_call);
  EXPECT_EQ(t.ops[record].host_cost, machine_.host.event_call);
  EXPECT_EQ(t.ops[mark].host_cost, Duration{});
  for (int kind = 0; kind < kLaunchKinds; ++kind) {
    EXPECT_EQ(t.constants.launch_latency[kind], machine_.host.launch_latency);
    EXPECT_EQ(t.constants.stream_gap[kind][0], machine_.host.stream_gap);
  }
  EXPECT_TRUE(t.knowledge.timing);
  EXPECT_EQ(t.machine, "h100-sxm-80gb");
  EXPECT_NE(t.notes.back().find("Nothing was measured: every duration is modelled for h100-sxm-80gb from FLOPs"),
            std::string::npos);
  EXPECT_FALSE(measured_nowhere(t));
}

TEST_F(ModelledStep, ACollectiveIsPricedByItsWholeMessage) {
  const OpId all_reduce = add(OpKind::collective, 2 * 7 * 1000), barrier = add(OpKind::collective);
  builder_.trace().ops[all_reduce].collective = CollectiveKind::all_reduce;
  builder_.trace().ops[barrier].collective = CollectiveKind::barrier;
  builder_.trace().ranks = 8;
  const Trace t = priced();
  EXPECT_EQ(t.ops[all_reduce].duration, prices_->collective(CollectiveKind::all_reduce, 8000, 8));
  EXPECT_EQ(t.ops[barrier].duration, prices_->collective(CollectiveKind::barrier, 0, 8));
}

TEST_F(ModelledStep, TheHostTakesItsTimeToNoticeThatItNeedNotWait) {
  const OpId wait = add(OpKind::synchronize), go = add(OpKind::kernel);
  builder_.trace().ops[wait].wait_for = WaitFor::device;
  const Trace t = priced();
  EXPECT_EQ(t.ops[wait].return_delay, machine_.host.synchronize_return);
  EXPECT_EQ(t.ops[go].return_delay, Duration{});
}

TEST_F(ModelledStep, WhatWasMeasuredIsNotModelled) {
  const OpId known = add(OpKind::kernel, 1000), unknown = add(OpKind::kernel, 1 << 30);
  builder_.trace().ops[known].origin = Origin::measured;
  builder_.trace().ops[known].duration = microseconds(7);
  EXPECT_FALSE(measured_nowhere(builder_.trace()));
  const Trace t = with_missing_durations(builder_.trace(), machine_);
  EXPECT_EQ(t.ops[known].duration, microseconds(7));
  EXPECT_EQ(t.ops[unknown].duration, prices_->kernel(t.ops[unknown]));
  EXPECT_EQ(t.ops[unknown].host_cost, Duration{}) << "the capture's own host times stand";
  ASSERT_EQ(t.notes.size(), 1U);
  EXPECT_EQ(t.notes[0].substr(0, 10), "1 kernels,");
}

TEST_F(ModelledStep, ATraceOfAMachineIsNotMeasuredNowhere) {
  add(OpKind::kernel, 1000);
  builder_.trace().machine = "h100-sxm-80gb";
  EXPECT_FALSE(measured_nowhere(builder_.trace()));
  builder_.trace().machine.clear();
  builder_.trace().knowledge.timing = true;
  EXPECT_FALSE(measured_nowhere(builder_.trace()));
}

}  // namespace
}  // namespace memwall
