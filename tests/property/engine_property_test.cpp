// Whatever the program: is causality kept, is every bound respected, and does folding change nothing?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/trace/scale.h"
#include "sim/engine/simulation.h"
#include "sim/trace/trace_builder.h"
#include "sim/trace/trace_check.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr int kStreams = 3;

// A random program on one thread and three streams: kernels, copies, events and waits, synchronizes.
Trace random_program(bool may_be_added) {
  TraceBuilder builder;
  Trace& t = builder.trace();
  t.name = "random";
  builder.add_thread("main");
  for (int s = 0; s < kStreams; ++s) builder.add_stream("s" + std::to_string(s), StreamRole::compute);
  t.constants = {};
  t.constants.launch_latency[0] = microseconds(*rc::gen::inRange(-2, 4));
  t.constants.stream_gap[0][0] = microseconds(*rc::gen::inRange(0, 3));
  t.constants.launch_queue_depth = static_cast<std::uint32_t>(*rc::gen::inRange(1, 20));
  const auto hbm = t.place("hbm"), host = t.place("host");
  const int count = *rc::gen::inRange(1, 60);
  std::vector<std::uint32_t> events;
  for (int i = 0; i < count; ++i) {
    Op op;
    op.stream = static_cast<std::uint16_t>(*rc::gen::inRange(0, kStreams));
    op.host_gap = microseconds(*rc::gen::inRange(0, 10));
    op.host_cost = microseconds(*rc::gen::inRange(0, 10));
    op.duration = microseconds(*rc::gen::inRange(0, 100));
    op.added = may_be_added && *rc::gen::inRange(0, 2) == 1;
    switch (*rc::gen::inRange(0, 6)) {
      case 0:
      case 1:
        op.kind = OpKind::kernel;
        op.bytes = *rc::gen::inRange<Bytes>(0, 200'000'000);
        op.waves = static_cast<float>(*rc::gen::inRange(0, 5));
        break;
      case 2: {
        op.kind = OpKind::copy;
        const bool out = *rc::gen::inRange(0, 2) == 1;
        op.from = out ? hbm : host;
        op.to = out ? host : hbm;
        // No faster than the 10 GB/s of the link, as a priced copy is.
        op.bytes = op.duration.count() / 100;
        if (*rc::gen::inRange(0, 3) == 0) {
          op.wait_for = WaitFor::own_op;
          op.return_delay = microseconds(*rc::gen::inRange(-20, 20));
        }
        break;
      }
      case 3:
        events.push_back(builder.add_event());
        builder.record(events.back(), op.stream, 0);
        continue;
      case 4:
        if (!events.empty())
          builder.wait(events[static_cast<std::size_t>(*rc::gen::inRange(0, static_cast<int>(events.size())))],
                       op.stream, 0);
        continue;
      default:
        op.kind = OpKind::synchronize;
        op.wait_for = *rc::gen::inRange(0, 2) ? WaitFor::stream : WaitFor::device;
        op.duration = {};
    }
    // Captures with a clock of 1 us hold ops of 0 us; they carry bytes at no finite rate.
    if (op.duration.count() == 0) op.bytes = 0;
    builder.append(op);
  }
  return std::move(builder).finish();
}

SimulationResult run(const Trace& trace) {
  SimulationOptions options;
  options.allocator = "ideal";
  return simulate(trace, test_machine(), options);
}

RC_GTEST_PROP(EngineProperty, CausalityAndStreamOrderHold, ()) {
  const Trace trace = random_program(true);
  RC_ASSERT(check(trace).empty());
  const auto result = run(trace);
  std::vector<Time> stream_free(kStreams);
  Time thread_free{};
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    const Op& op = trace.ops[i];
    const OpRecord& r = result.records[i];
    RC_ASSERT(r.host_start == thread_free + op.host_gap);
    RC_ASSERT(r.host_end >= r.host_start);
    thread_free = r.host_end;
    if (!runs_on_device(op.kind)) continue;
    RC_ASSERT(r.start >= r.host_start);
    RC_ASSERT(r.start >= stream_free[op.stream]);
    RC_ASSERT(r.end - r.start >= op.duration - picoseconds(1));
    if (r.device_cause != kNoOp && r.device_reason == WaitReason::event)
      RC_ASSERT(r.start >= result.records[r.device_cause].end);
    stream_free[op.stream] = r.end;
  }
}

RC_GTEST_PROP(EngineProperty, NoLinkCarriesMoreThanItCan, ()) {
  Trace trace = random_program(true);
  for (Op& op : trace.ops) op.added = true;  // captured overlap is exempt by design
  const auto result = run(trace);
  const Machine machine = test_machine();
  for (std::size_t l = 0; l < machine.links.size(); ++l) {
    const double least = static_cast<double>(result.links[l].bytes) / machine.links[l].bandwidth;
    RC_ASSERT(to_seconds(result.links[l].busy) >= least * (1 - 1e-6) - 1e-9);
    RC_ASSERT(result.links[l].busy <= result.end);
  }
}

RC_GTEST_PROP(EngineProperty, CapturedOverlapIsNotSlowedAgain, ()) {
  const Trace trace = random_program(false);
  const auto result = run(trace);
  for (std::size_t i = 0; i < trace.ops.size(); ++i)
    if (runs_on_device(trace.ops[i].kind))
      RC_ASSERT(result.records[i].end - result.records[i].start == trace.ops[i].duration);
}

RC_GTEST_PROP(EngineProperty, TwiceIsTheSame, ()) {
  const Trace trace = random_program(true);
  const auto a = run(trace), b = run(trace);
  for (std::size_t i = 0; i < trace.ops.size(); ++i) {
    RC_ASSERT(a.records[i].host_end == b.records[i].host_end);
    RC_ASSERT(a.records[i].end == b.records[i].end);
    RC_ASSERT(a.records[i].device_cause == b.records[i].device_cause);
  }
}

// On one stream without shared links, longer kernels never end the program earlier: there it is a theorem.
RC_GTEST_PROP(EngineProperty, SlowerKernelsOnOneStreamAreNeverFaster, ()) {
  Trace trace = random_program(false);
  for (Op& op : trace.ops) op.stream = 0;
  const auto base = run(trace), slow = run(scaled(trace, {1.5, 1.5, 1}));
  RC_ASSERT(slow.end >= base.end);
}

// N ranks of one program behind a shared uplink: simulated one by one, each with its own stream
// and copy engine, or folded into one that counts N times.
RC_GTEST_PROP(EngineProperty, FoldedAndUnfoldedAgree, ()) {
  const auto ranks = static_cast<std::uint32_t>(*rc::gen::inRange(2, 5));
  const int copies = *rc::gen::inRange(1, 12);
  const auto build = [&](std::uint32_t devices, const std::vector<std::pair<Duration, Duration>>& program) {
    TraceBuilder builder;
    builder.trace().constants = {};
    const auto hbm = builder.trace().place("hbm"), host = builder.trace().place("host");
    for (std::uint32_t d = 0; d < devices; ++d) {
      builder.add_thread("rank " + std::to_string(d));
      builder.add_stream("copy " + std::to_string(d), StreamRole::copy, static_cast<std::uint16_t>(d));
    }
    for (const auto& [gap, duration] : program)
      for (std::uint32_t d = 0; d < devices; ++d) {
        Op op;
        op.kind = OpKind::copy;
        op.thread = op.stream = static_cast<std::uint16_t>(d);
        op.from = hbm;
        op.to = host;
        op.host_gap = gap;
        op.duration = duration;
        op.bytes = duration.count() / 100;  // 10 GB/s
        op.added = true;
        builder.append(op);
      }
    return std::move(builder).finish();
  };
  std::vector<std::pair<Duration, Duration>> program;
  for (int i = 0; i < copies; ++i)
    program.emplace_back(microseconds(*rc::gen::inRange(0, 50)), microseconds(*rc::gen::inRange(1, 100)));
  Machine machine = test_machine();
  for (Link& link : machine.links) link.sharers = ranks;
  SimulationOptions options;
  options.allocator = "ideal";
  const Trace unfolded = build(ranks, program);
  Trace folded = build(1, program);
  folded.ranks = ranks;
  const auto apart = simulate(unfolded, machine, options);
  const auto together = simulate(folded, machine, options);
  for (std::size_t i = 0; i < folded.ops.size(); ++i)
    RC_ASSERT(apart.records[i * ranks].end == together.records[i].end);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
