// An event is a position in its stream, and one wait for it is enough: do the waits that were pending when it was recorded
// change any time when they are written once more behind each wait that a policy adds, as policies once did?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "models/hw/modelled_step.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "models/workload/generate/generate.h"
#include "sim/engine/simulation.h"
#include "sim/policy/registry.h"
#include "sim/trace/trace_check.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// The trace with every pending wait repeated, and where its ops are in that.
struct Repeated {
  Trace trace;
  std::vector<OpId> place;
  std::map<std::uint16_t, std::set<std::uint32_t>> pending;           // by stream: events that its next op waits for
  std::map<std::uint32_t, std::set<std::uint32_t>> pending_at_event;  // when it was recorded

  void follow(const Op& op) {
    if (runs_on_device(op.kind)) pending.erase(op.stream);
    if (op.kind == OpKind::event_record) pending_at_event[op.target] = pending[op.stream];
    if (op.kind != OpKind::event_wait) return;
    pending[op.stream].insert(op.target);
    if (!op.added) return;
    for (const std::uint32_t event : pending_at_event[op.target]) {
      if (!pending[op.stream].insert(event).second) continue;
      Op also = op;
      also.target = event;
      also.host_gap = also.host_cost = Duration{};
      trace.ops.push_back(also);
    }
  }
};

Repeated with_waits_repeated(const Trace& trace) {
  Repeated repeated;
  repeated.trace = trace;
  repeated.trace.ops.clear();
  for (const Op& op : trace.ops) {
    repeated.place.push_back(static_cast<OpId>(repeated.trace.ops.size()));
    repeated.trace.ops.push_back(op);
    repeated.follow(op);
  }
  const auto moved = [&](OpId id) {
    return id < repeated.place.size() ? repeated.place[id] : static_cast<OpId>(repeated.trace.ops.size());
  };
  for (Op& op : repeated.trace.ops) {
    if (op.kind == OpKind::hand_over) op.target = moved(op.target);
    if (op.source != kNoOp) op.source = moved(op.source);
  }
  for (Step& step : repeated.trace.steps) {
    step.first = moved(step.first);
    step.last = moved(step.last);
  }
  return repeated;
}

SimulationResult times_of(const Trace& trace, const Machine& machine) {
  SimulationOptions options;
  options.allocator = "ideal";
  return simulate(trace, machine, options);
}

// "" if every op has the same times and every tier and link the same loads; the number of waits put in goes to `waits`.
std::string difference_by_repeating(const Trace& trace, const Machine& machine, std::size_t& waits) {
  const Repeated repeated = with_waits_repeated(trace);
  if (const std::vector<std::string> faults = check(repeated.trace); !faults.empty()) return faults.front();
  waits += repeated.trace.ops.size() - trace.ops.size();
  const SimulationResult one = times_of(trace, machine), many = times_of(repeated.trace, machine);
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const OpRecord &a = one.records[id], &b = many.records[repeated.place[id]];
    if (a.host_start != b.host_start || a.host_end != b.host_end || a.start != b.start || a.end != b.end)
      return "op " + std::to_string(id) + " has other times";
  }
  for (std::size_t i = 0; i < one.links.size(); ++i)
    if (one.links[i].bytes != many.links[i].bytes || one.links[i].busy != many.links[i].busy) return "a link differs";
  for (std::size_t i = 0; i < one.tiers.size(); ++i)
    if (one.tiers[i].peak_allocated != many.tiers[i].peak_allocated) return "a tier differs";
  return one.end == many.end ? "" : "the ends differ";
}

Trace rewritten(const Trace& base, const std::string& policy, const Machine& machine) {
  return apply_rewriters(base, {parse_policy(policy)}, machine, *test_pricer(machine));
}

RC_GTEST_PROP(EventWaits, RepeatingThemChangesNoTime, ()) {
  GptShape shape;
  shape.layers = *rc::gen::inRange(1, 5);
  shape.hidden = 8 * *rc::gen::inRange(1, 5);
  shape.steps = *rc::gen::inRange(1, 3);
  shape.launch_cost = nanoseconds(*rc::gen::inRange(0, 3));
  const std::string policy =
      *rc::gen::element<std::string>("offload:what=parameters,min_bytes=1", "offload:what=activations,min_bytes=1",
                                     "offload:what=parameters+activations,min_bytes=1,to=nvme",
                                     "offload:what=optimizer,cpu_adam=0", "zero:stage=3,ranks=4", "checkpoint:mode=full");
  RC_LOG() << policy;
  const Machine machine = test_machine();
  std::size_t waits = 0;
  RC_ASSERT(difference_by_repeating(rewritten(gpt_step(shape), policy, machine), machine, waits) == "");
}

Trace generated(const std::string& what) {
  const TrainingJob job = load_training_job(what);
  return modelled_on(generate_step(job.model, job.recipe), test_machine());
}

TEST(EventWaits, OfGeneratedNetworksChangeNoTimeEither) {
  std::size_t waits = 0;
  for (const char* network : {"gpt2-124m:layers=24,batch=1,sequence=64", "llama3.2-1b:layers=3,batch=1,sequence=64",
                              "bert-base:layers=4,batch=2", "resnet50:batch=2"})
    for (const char* policy : {"offload:what=parameters", "offload:what=activations", "zero:stage=3,ranks=8"}) {
      const Machine machine = test_machine();
      EXPECT_EQ(difference_by_repeating(rewritten(generated(network), policy, machine), machine, waits), "")
          << network << " " << policy;
    }
  EXPECT_GT(waits, 2'000u) << "the waits that are no longer written; without any this test would show nothing";
}

std::size_t ops_with_parameters_offloaded(int layers) {
  const Trace base = generated("gpt2-124m:batch=1,sequence=64,layers=" + std::to_string(layers));
  const Trace trace = rewritten(base, "offload:what=parameters", test_machine());
  return trace.ops.size() - base.ops.size();
}

TEST(EventWaits, OpsThatOffloadAddsGrowWithTheParametersNotWithTheirSquare) {
  const std::size_t few = ops_with_parameters_offloaded(10), more = ops_with_parameters_offloaded(20),
                    most = ops_with_parameters_offloaded(80);
  EXPECT_GT(more, few);
  EXPECT_EQ(most - more, 6 * (more - few));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
