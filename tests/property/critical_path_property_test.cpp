// Is the walk back a longest path? The reference knows nothing of the engine: it writes the bounds of
// docs/engine.md as a graph and asks Boost.Graph for the longest path to every point.
#include <rapidcheck/gtest.h>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dag_shortest_paths.hpp>
#include <boost/graph/reverse_graph.hpp>

#include <map>

#include "sim/trace/trace_builder.h"
#include "tests/support/test_machine.h"
#include "traces/run/analysis/accounting.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Weight = boost::property<boost::edge_weight_t, std::int64_t>;
using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::bidirectionalS, boost::no_property, Weight>;

Duration random_us(int most) { return microseconds(*rc::gen::inRange(0, most)); }

// Two threads with two streams each, joined by hand-overs; kernels, events within a thread's streams, and
// calls that block. No resource is shared, so every bound is one of time between two points.
Trace random_program() {
  TraceBuilder b;
  Trace& t = b.trace();
  t.name = "random";
  for (const char* name : {"main", "autograd"}) b.add_thread(name);
  for (const char* name : {"a", "b", "c", "d"}) b.add_stream(name, StreamRole::compute);
  t.constants = {};
  t.constants.launch_latency[0] = random_us(4);
  t.constants.stream_gap[0][0] = random_us(3);
  t.constants.event_latency = random_us(3);
  t.constants.launch_queue_depth = 0;
  std::vector<std::uint32_t> recorded[2];
  const int count = *rc::gen::inRange(1, 80);
  for (int i = 0; i < count; ++i) {
    Op op;
    op.thread = static_cast<std::uint16_t>(*rc::gen::inRange(0, 2));
    op.stream = static_cast<std::uint16_t>(2 * op.thread + *rc::gen::inRange(0, 2));
    op.host_gap = random_us(8);
    op.host_cost = random_us(8);
    auto& events = recorded[op.thread];
    switch (*rc::gen::inRange(0, 10)) {
      case 0:
        op.kind = OpKind::event_record;
        op.target = b.add_event();
        events.push_back(op.target);
        break;
      case 1:
      case 2:
        if (events.empty()) continue;
        op.kind = OpKind::event_wait;
        op.target = events[*rc::gen::inRange<std::size_t>(0, events.size())];
        break;
      case 3:
        op.kind = *rc::gen::inRange(0, 2) == 0 ? OpKind::synchronize : OpKind::host_work;
        op.wait_for = WaitFor::stream;
        if (op.kind == OpKind::host_work) op.duration = random_us(20);
        break;
      case 4:
        if (t.ops.empty() || t.ops.back().thread == op.thread) continue;
        op.kind = OpKind::hand_over;
        op.target = static_cast<OpId>(t.ops.size() - 1);
        break;
      default:
        op.kind = OpKind::kernel;
        op.duration = random_us(40);
        op.phase = *rc::gen::element(Phase::forward, Phase::recompute);
    }
    b.append(op);
  }
  return std::move(b).finish();
}

// Points in time: begin and end of each op's call, begin and end of its work.
class Bounds {
 public:
  explicit Bounds(const Trace& trace) : trace_(trace), graph_(4 * trace.ops.size() + 1) {
    for (OpId id = 0; id < trace.ops.size(); ++id) add_op(id);
    longest_from_start_ = longest(graph_, 0);
  }

  static std::size_t call_begin(OpId id) { return 4 * std::size_t{id} + 1; }
  static std::size_t call_end(OpId id) { return 4 * std::size_t{id} + 2; }
  static std::size_t work_begin(OpId id) { return 4 * std::size_t{id} + 3; }
  static std::size_t work_end(OpId id) { return 4 * std::size_t{id} + 4; }

  Time earliest(std::size_t point) const { return Time(longest_from_start_[point]); }
  // Points from which a longest path leads on to `last`: if they moved, so would the end.
  std::vector<bool> critical(std::size_t last) const {
    const std::vector<std::int64_t> on = longest(boost::make_reverse_graph(graph_), last);
    std::vector<bool> result;
    for (std::size_t p = 0; p < on.size(); ++p)
      result.push_back(on[p] >= 0 && longest_from_start_[p] + on[p] == longest_from_start_[last]);
    return result;
  }

 private:
  void bound(std::size_t from, std::size_t to, Duration by) { boost::add_edge(from, to, -by.count(), graph_); }

  void add_op(OpId id) {
    const Op& op = trace_.ops[id];
    const std::size_t begin = call_begin(id), end = call_end(id);
    bound(previous_.count(op.thread) > 0 ? call_end(previous_[op.thread]) : 0, begin, op.host_gap);
    previous_[op.thread] = id;
    bound(begin, end, op.host_cost + (op.kind == OpKind::host_work ? op.duration : Duration{}));
    std::vector<OpId>& behind = stream_[op.stream];  // what the next point of the stream stands behind
    switch (op.kind) {
      case OpKind::hand_over:
        bound(call_end(op.target), begin, op.host_gap);
        break;
      case OpKind::event_record:
        event_[op.target] = behind;
        break;
      case OpKind::event_wait:
        for (const OpId producer : event_[op.target]) {
          behind.push_back(producer);
          producers_[op.stream].push_back(producer);
        }
        break;
      case OpKind::synchronize:
        for (const OpId awaited : behind) bound(work_end(awaited), end, {});
        break;
      case OpKind::host_work:
        for (const OpId awaited : behind) bound(work_end(awaited), end, op.host_cost + op.duration);
        break;
      default:
        add_kernel(id, op);
    }
  }

  void add_kernel(OpId id, const Op& op) {
    bound(call_end(id), work_begin(id), trace_.constants.launch_latency[0]);
    if (in_stream_.count(op.stream) > 0)
      bound(work_end(in_stream_[op.stream]), work_begin(id), trace_.constants.stream_gap[0][0]);
    for (const OpId producer : producers_[op.stream])
      bound(work_end(producer), work_begin(id), trace_.constants.event_latency);
    producers_[op.stream].clear();
    bound(work_begin(id), work_end(id), op.duration);
    in_stream_[op.stream] = id;
    stream_[op.stream] = {id};
  }

  // Longest paths from `start`, by Boost's shortest paths of negated weights; -1 where none leads.
  template <class G>
  static std::vector<std::int64_t> longest(const G& graph, std::size_t start) {
    std::vector<std::int64_t> distance(boost::num_vertices(graph));
    const std::int64_t unreached = std::numeric_limits<std::int64_t>::max();
    boost::dag_shortest_paths(
        graph, start,
        boost::distance_map(boost::make_iterator_property_map(distance.begin(), boost::get(boost::vertex_index, graph)))
            .distance_inf(unreached));
    for (std::int64_t& d : distance) d = d == unreached ? -1 : -d;
    return distance;
  }

  const Trace& trace_;
  Graph graph_;
  std::vector<std::int64_t> longest_from_start_;
  std::map<std::uint16_t, OpId> previous_, in_stream_;
  std::map<std::uint16_t, std::vector<OpId>> stream_, producers_;
  std::map<std::uint32_t, std::vector<OpId>> event_;
};

// Every op at its earliest time is what makes the graph a reference for the walk.
void require_earliest(const memwall::Run& run, const Bounds& bounds) {
  for (OpId id = 0; id < run.trace->ops.size(); ++id) {
    const OpRecord& record = run.result.records[id];
    RC_ASSERT(record.host_start == bounds.earliest(Bounds::call_begin(id)));
    RC_ASSERT(record.host_end == bounds.earliest(Bounds::call_end(id)));
    if (record.start == kNever) continue;
    RC_ASSERT(record.start == bounds.earliest(Bounds::work_begin(id)));
    RC_ASSERT(record.end == bounds.earliest(Bounds::work_end(id)));
  }
}

RC_GTEST_PROP(CriticalPathProperty, IsALongestPathOfTheBounds, ()) {
  const memwall::Run run = simulate_and_record(random_program(), test_machine(), {});
  const Bounds bounds(run.trace);
  require_earliest(run, bounds);
  std::vector<PathSegment> path = critical_path(run);
  // Contiguous from 0 to the end.
  Time at{};
  for (const PathSegment& segment : path) {
    RC_ASSERT(segment.begin == at);
    RC_ASSERT(segment.end > segment.begin);
    at = segment.end;
  }
  RC_ASSERT(at == run.result.end);
  // Several ends may tie for the last: a point is critical if it is for one of them.
  std::vector<bool> critical(4 * run.trace->ops.size() + 1, false);
  for (OpId id = 0; id < run.trace->ops.size(); ++id)
    for (const std::size_t point : {Bounds::work_end(id), Bounds::call_end(id)}) {
      const bool runs = point == Bounds::call_end(id) || run.result.records[id].start != kNever;
      if (!runs || bounds.earliest(point) != run.result.end) continue;
      const std::vector<bool> found = bounds.critical(point);
      for (std::size_t p = 0; p < found.size(); ++p) critical[p] = critical[p] || found[p];
    }
  for (const PathSegment& segment : path) {
    RC_ASSERT(segment.op != kNoOp);
    switch (segment.part) {
      case PathPart::work:
        RC_ASSERT(critical[Bounds::work_begin(segment.op)]);
        RC_ASSERT(critical[Bounds::work_end(segment.op)]);
        break;
      case PathPart::gap:
        RC_ASSERT(critical[Bounds::call_begin(segment.op)]);
        break;
      case PathPart::call:
        RC_ASSERT(critical[Bounds::call_end(segment.op)]);
        break;
      default:
        break;
    }
  }
}

RC_GTEST_PROP(AccountingProperty, AddsUpToThePicosecond, ()) {
  Trace trace = random_program();
  const OpId middle = static_cast<OpId>(trace.ops.size() / 2);
  trace.steps = {{"one", 0, middle}, {"two", middle, static_cast<OpId>(trace.ops.size())}};
  const memwall::Run run = simulate_and_record(std::move(trace), test_machine(), {});
  const TimeAccounting accounting = account(run);
  RC_ASSERT(accounting.total.total() == run.result.end);
  for (const StepAccounting& step : accounting.steps)
    RC_ASSERT(step.times.total() == step.window.end - step.window.begin);
  // Compute is the union of its kernels, however they overlap: count it instant by instant.
  std::map<Time, int> change;
  for (OpId id = 0; id < run.trace->ops.size(); ++id) {
    const OpRecord& record = run.result.records[id];
    if (record.start == kNever || run.trace->ops[id].phase == Phase::recompute) continue;
    ++change[record.start];
    --change[record.end];
  }
  Duration busy{};
  int running = 0;
  Time since{};
  for (const auto& [time, by] : change) {
    if (running > 0) busy += time - since;
    running += by;
    since = time;
  }
  RC_ASSERT(accounting.total[TimeClass::compute] == busy);
}

// Sums at the windows' ends against the classes of every instant, which the viewer shows.
RC_GTEST_PROP(AccountingProperty, IsThatOfTheTimeline, ()) {
  Trace trace = random_program();
  const auto ops = static_cast<OpId>(trace.ops.size());
  const auto boundary = [&] { return *rc::gen::inRange<OpId>(0, ops + 1); };
  for (int i = 0; i < 3; ++i) {  // that may overlap, or be empty
    const OpId a = boundary(), b = boundary();
    trace.steps.push_back({"step", std::min(a, b), std::max(a, b)});
  }
  std::erase_if(trace.steps, [&](const Step& step) { return step.first >= ops; });
  const memwall::Run run = simulate_and_record(std::move(trace), test_machine(), {});
  const std::vector<PathSegment> path = critical_path(run);
  const TimeAccounting sums = account(run, path), timeline = account(run, class_timelines(run, {path}));
  RC_ASSERT(sums.total.by_class == timeline.total.by_class);
  RC_ASSERT(sums.steps.size() == timeline.steps.size());
  for (std::size_t i = 0; i < sums.steps.size(); ++i)
    RC_ASSERT(sums.steps[i].times.by_class == timeline.steps[i].times.by_class);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
