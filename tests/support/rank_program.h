// Small programs of several ranks, written op by op: kernels and collectives on a stream each, issued by one thread.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/trace/ranks.h"
#include "sim/trace/trace_builder.h"

namespace memwall {

// One rank. No call costs host time and no launch takes any, so times follow from durations alone.
class RankAuthor {
 public:
  explicit RankAuthor(std::uint32_t number) : number_(number) {
    Trace& t = builder_.trace();
    t.name = "job";
    t.job_ranks = 8;
    t.knowledge.timing = true;
    t.constants.event_latency = {};
    builder_.add_thread("main");
    builder_.add_stream("compute", StreamRole::compute);
    builder_.add_stream("communication", StreamRole::communication);
    t.steps.push_back({"step", 0, 0});
    append(OpKind::mark, 0, {});
  }

  OpId kernel(Duration duration, std::uint16_t stream = 0) { return append(OpKind::kernel, stream, duration); }
  // On the communication stream if not said otherwise.
  OpId meet(std::uint32_t rendezvous, Duration duration, std::uint16_t stream = 1, std::uint16_t group = 0) {
    const OpId id = append(OpKind::collective, stream, duration);
    Op& op = builder_.trace().ops[id];
    op.collective = CollectiveKind::all_reduce;
    op.name = builder_.trace().strings.intern("ncclDevKernel_AllReduce");
    op.target = rendezvous;
    op.group = group;
    return id;
  }
  // What follows in `later` waits for what stands in `earlier`.
  void order(std::uint16_t earlier, std::uint16_t later) {
    const std::uint32_t event = builder_.add_event();
    builder_.record(event, earlier, 0);
    builder_.wait(event, later, 0);
  }
  void synchronize() {
    Op op;
    op.kind = OpKind::synchronize;
    op.wait_for = WaitFor::device;
    builder_.append(op);
  }
  OpId mark() { return append(OpKind::mark, 0, {}); }
  void step() {
    builder_.trace().steps.back().last = mark();
    builder_.trace().steps.push_back({"step", builder_.trace().steps.back().last, 0});
  }
  Trace& trace() { return builder_.trace(); }
  TraceBuilder& builder() { return builder_; }

  RankProgram finish() && {
    Trace trace = std::move(builder_).finish();
    trace.steps.back().last = static_cast<OpId>(trace.ops.size());
    return {number_, std::move(trace)};
  }

 private:
  OpId append(OpKind kind, std::uint16_t stream, Duration duration) {
    Op op;
    op.kind = kind;
    op.stream = stream;
    op.duration = duration;
    return builder_.append(op);
  }

  std::uint32_t number_;
  TraceBuilder builder_;
};

template <class... Authors>
Trace joined(Authors... authors) {
  std::vector<RankProgram> ranks;
  (ranks.push_back(std::move(authors).finish()), ...);
  return joined_ranks(std::move(ranks));
}

}  // namespace memwall
