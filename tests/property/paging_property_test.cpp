// With a pager, whatever the size of the device: is its capacity kept, does everything still run,
// and does every op find its data?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "sim/policy/registry.h"
#include "sim/trace/repeat.h"
#include "sim/engine/simulation.h"
#include "sim/trace/trace_check.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct Paged {
  Trace trace;
  Machine machine = test_machine();
  SimulationResult result, unlimited;
  int hbm = 0, host = 0;
};

Paged random_run() {
  Paged p;
  GptShape shape;
  shape.layers = *rc::gen::inRange(1, 5);
  shape.hidden = 8 * *rc::gen::inRange(1, 6);
  shape.batch = *rc::gen::inRange(1, 5);
  shape.sequence = 8 * *rc::gen::inRange(1, 6);
  shape.launch_cost = microseconds(*rc::gen::inRange(0, 8));
  p.trace = repeated(gpt_step(shape), static_cast<std::uint32_t>(*rc::gen::inRange(1, 3)));
  p.hbm = p.machine.tier("hbm");
  p.host = p.machine.tier("host");
  SimulationOptions options;
  options.allocator = "ideal";
  p.unlimited = simulate(p.trace, p.machine, options);
  const Bytes peak = p.unlimited.tiers[p.hbm].peak_allocated;
  p.machine.tiers[p.hbm].capacity = peak * *rc::gen::inRange(40, 110) / 100;
  const PolicySpec spec = parse_policy(*rc::gen::inRange(0, 2) ? "lru:clock=host" : "lru:clock=device");
  const auto pager = spec.info->make_pager(spec.arguments);
  options.pager = pager.get();
  p.result = simulate(p.trace, p.machine, options);
  return p;
}

RC_GTEST_PROP(PagingProperty, CapacityIsNeverExceededWhereItFits, ()) {
  const Paged p = random_run();
  const TierResult& hbm = p.result.tiers[p.hbm];
  if (p.result.fits) RC_ASSERT(hbm.peak_allocated <= p.machine.tiers[p.hbm].capacity);
  if (!p.result.fits) RC_ASSERT(hbm.missing > 0);
}

RC_GTEST_PROP(PagingProperty, EverythingRunsAndNothingGetsFaster, ()) {
  const Paged p = random_run();
  for (std::size_t i = 0; i < p.trace.ops.size(); ++i) {
    if (!runs_on_device(p.trace.ops[i].kind)) continue;
    RC_ASSERT(p.result.records[i].end != kNever);
    RC_ASSERT(p.result.records[i].end >= p.unlimited.records[i].end);
  }
}

RC_GTEST_PROP(PagingProperty, AnOpStartsAfterTheMovesOfItsDataHaveEnded, ()) {
  const Paged p = random_run();
  std::vector<std::vector<MoveRecord>> moves(p.trace.storages.size());
  for (const MoveRecord& m : p.result.moves) {
    RC_ASSERT(m.end > m.start || m.bytes == 0);
    moves[m.storage].push_back(m);
  }
  for (std::size_t i = 0; i < p.trace.ops.size(); ++i) {
    const OpRecord& r = p.result.records[i];
    if (!runs_on_device(p.trace.ops[i].kind)) continue;
    for (const Use& use : p.trace.uses_of(p.trace.ops[i]))
      for (const MoveRecord& m : moves[use.storage]) RC_ASSERT(m.end <= r.start || m.start >= r.end);
  }
}

RC_GTEST_PROP(PagingProperty, AStorageLeavesAndReturnsInTurn, ()) {
  const Paged p = random_run();
  std::vector<int> at(p.trace.storages.size(), -1);
  for (const MoveRecord& m : p.result.moves) {
    RC_ASSERT(m.from != m.to);
    RC_ASSERT(at[m.storage] < 0 || at[m.storage] == m.from);
    at[m.storage] = m.to;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
