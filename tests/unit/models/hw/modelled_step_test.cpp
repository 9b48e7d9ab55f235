// Does a step that was measured nowhere get all its times from the machine's file, and one that was keep its own?
#include "models/hw/modelled_step.h"

#include <gtest/gtest.h>

#include "models/hw/machine_file.h"
#include "models/hw/pricer.h"
#include "sim/trace/trace_builder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

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

TEST_F(ModelledStep, TheFrameworksDispatchIsPaidBeforeTheOp) {
  const HostCosts& host = machine_.host;
  ASSERT_GT(host.eager_forward, Duration{});
  const OpId forward = add(OpKind::kernel), backward = add(OpKind::kernel), again = add(OpKind::kernel),
             step = add(OpKind::kernel), compiled = add(OpKind::kernel), native = add(OpKind::kernel);
  const auto set = [&](OpId id, Dispatch dispatch, Phase phase, std::uint16_t calls, std::uint16_t kernels) {
    Op& op = builder_.trace().ops[id];
    op.dispatch = dispatch, op.phase = phase, op.framework_calls = calls, op.kernels = kernels;
  };
  set(forward, Dispatch::eager, Phase::forward, 3, 2);
  set(backward, Dispatch::eager, Phase::backward, 1, 1);
  set(again, Dispatch::eager, Phase::recompute, 1, 1);
  set(step, Dispatch::eager, Phase::optimizer, 2, 1);
  set(compiled, Dispatch::compiled, Phase::forward, 0, 3);
  set(native, Dispatch::native, Phase::forward, 5, 1);
  const Trace t = priced();
  EXPECT_EQ(t.ops[forward].host_gap, 3 * host.eager_forward);
  EXPECT_EQ(t.ops[forward].host_cost, 2 * host.launch) << "each of its kernels";
  EXPECT_EQ(t.ops[backward].host_gap, host.eager_backward);
  EXPECT_EQ(t.ops[again].host_gap, host.eager_forward) << "recomputation runs the model's Python";
  EXPECT_EQ(t.ops[step].host_gap, 2 * host.eager_optimizer);
  EXPECT_EQ(t.ops[compiled].host_gap, 3 * host.compiled_call);
  EXPECT_EQ(t.ops[native].host_gap, Duration{});
}

TEST_F(ModelledStep, NodesOfACudaGraphCostTheHostNothing) {
  const OpId launch = add(OpKind::graph_launch), node = add(OpKind::kernel, 1 << 20);
  Op& op = builder_.trace().ops[node];
  op.graph_member = true, op.dispatch = Dispatch::eager, op.framework_calls = 4;
  const Trace t = priced();
  EXPECT_EQ(t.ops[launch].host_cost, machine_.host.launch);
  EXPECT_EQ(t.ops[node].host_cost + t.ops[node].host_gap, Duration{});
  EXPECT_GT(t.ops[node].duration, Duration{});
}

TEST_F(ModelledStep, TheShapeOfTheWorkCounts) {
  const OpId known = add(OpKind::kernel, 3 << 20, 2.0 * 129 * 129 * 65536),
             unknown = add(OpKind::kernel, 3 << 20, 2.0 * 129 * 129 * 65536);
  for (const OpId id : {known, unknown}) {
    builder_.trace().ops[id].operator_class = OperatorClass::gemm;
    builder_.trace().ops[id].data_type = DataType::bf16;
  }
  builder_.trace().ops[known].shape = builder_.trace().shapes.intern({1, 129, 129, 65536});
  const Trace t = priced();
  EXPECT_GT(t.ops[known].duration, t.ops[unknown].duration) << "few tiles, odd rows";
  EXPECT_EQ(t.ops[known].duration, prices_->kernel(t.ops[known], {1, 129, 129, 65536}));
}

// A thousand tiny eager kernels are as fast as the host issues them; in a graph, as the device runs them.
TEST_F(ModelledStep, AHostBoundStepComesOutHostBound) {
  for (int i = 0; i < 1000; ++i) {
    Op& op = builder_.trace().ops[add(OpKind::kernel, 4096)];
    op.operator_class = OperatorClass::elementwise, op.dispatch = Dispatch::eager, op.framework_calls = 1;
  }
  const Trace t = priced();
  Duration host{}, device{};
  for (const Op& op : t.ops) host += op.host_gap + op.host_cost, device += op.duration;
  EXPECT_GT(host, 3 * device);
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

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
