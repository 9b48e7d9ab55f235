// A pager on each rank of a trace of several: is each rank paged as it would be alone, and do folded ranks move what
// they would move written out?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <tuple>

#include "sim/engine/simulation.h"
#include "sim/policy/registry.h"
#include "sim/trace/ranks.h"
#include "sim/trace/trace_check.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Trace random_program() {
  GptShape shape;
  shape.layers = *rc::gen::inRange(1, 4);
  shape.hidden = 8 * *rc::gen::inRange(1, 6);
  shape.batch = *rc::gen::inRange(1, 5);
  shape.sequence = 8 * *rc::gen::inRange(1, 6);
  shape.launch_cost = microseconds(*rc::gen::inRange(0, 8));
  return gpt_step(shape);
}

std::string random_pager() { return *rc::gen::inRange(0, 2) ? "lru:clock=host" : "lru:clock=device"; }

SimulationResult paged(const Trace& trace, const Machine& machine, const std::string& pager) {
  const PolicySpec spec = parse_policy(pager);
  const auto made = spec.info->make_pager(spec.arguments);
  SimulationOptions options;
  options.allocator = "ideal";
  options.pager = made.get();
  return simulate(trace, machine, options);
}

Bytes peak_of(const Trace& trace) {
  SimulationOptions options;
  options.allocator = "ideal";
  const Machine machine = test_machine();
  return simulate(trace, machine, options).tiers[static_cast<std::size_t>(machine.tier("hbm"))].peak_allocated;
}

Machine machine_with(Bytes hbm) {
  Machine machine = test_machine();
  machine.tiers[static_cast<std::size_t>(machine.tier("hbm"))].capacity = hbm;
  return machine;
}

bool same_times(const OpRecord& a, const OpRecord& b) {
  return std::tie(a.host_start, a.host_end, a.start, a.end) == std::tie(b.host_start, b.host_end, b.start, b.end);
}

// Of those whose storages are first to first + count - 1, in their order.
std::vector<MoveRecord> moves_of(const SimulationResult& result, std::size_t first, std::size_t count) {
  std::vector<MoveRecord> moves;
  for (const MoveRecord& move : result.moves)
    if (move.storage >= first && move.storage < first + count) moves.push_back(move);
  return moves;
}

void require_same(const SimulationResult& together, const SimulationResult& alone, std::size_t first_op,
                  std::size_t first_storage, std::size_t storages) {
  for (std::size_t i = 0; i < alone.records.size(); ++i)
    RC_ASSERT(same_times(alone.records[i], together.records[first_op + i]));
  const std::vector<MoveRecord> moves = moves_of(together, first_storage, storages);
  RC_ASSERT(moves.size() == alone.moves.size());
  for (std::size_t i = 0; i < moves.size(); ++i) {
    const MoveRecord &a = moves[i], &b = alone.moves[i];
    RC_ASSERT(a.storage == b.storage + first_storage);
    RC_ASSERT(std::tie(a.start, a.end, a.bytes) == std::tie(b.start, b.end, b.bytes));
    RC_ASSERT(a.for_op == (b.for_op == kNoOp ? kNoOp : static_cast<OpId>(b.for_op + first_op)));
  }
}

RC_GTEST_PROP(PagedRanks, WhoMeetsNobodyIsPagedAsAlone, ()) {
  const Trace one = random_program(), other = random_program();
  const Machine machine = machine_with(std::max(peak_of(one), peak_of(other)) * *rc::gen::inRange(40, 100) / 100);
  const std::string pager = random_pager();
  const SimulationResult first = paged(one, machine, pager), second = paged(other, machine, pager);
  RC_CLASSIFY(!first.moves.empty() && !second.moves.empty());
  const Trace trace = joined_ranks({{0, one}, {3, other}});
  const SimulationResult together = paged(trace, machine, pager);
  require_same(together, first, 0, 0, one.storages.size());
  require_same(together, second, one.ops.size(), one.storages.size(), other.storages.size());
  RC_ASSERT(together.moves.size() == first.moves.size() + second.moves.size());
  RC_ASSERT(together.fits == (first.fits && second.fits));
  const auto hbm = static_cast<std::size_t>(machine.tier("hbm"));
  const RankMachine ranks = machine_of_ranks(machine, trace);
  RC_ASSERT(together.tiers[ranks.views[0].tier[hbm]].peak_allocated == first.tiers[hbm].peak_allocated);
  RC_ASSERT(together.tiers[ranks.views[1].tier[hbm]].peak_allocated == second.tiers[hbm].peak_allocated);
}

RC_GTEST_PROP(PagedRanks, FoldedRanksArePagedAsWrittenOut, ()) {
  const Trace program = random_program();
  Machine machine = machine_with(peak_of(program) * *rc::gen::inRange(40, 100) / 100);
  for (Link& link : machine.links)
    if (link.name != "hbm") link.sharers = 2;
  machine.tiers[static_cast<std::size_t>(machine.tier("host"))].sharers = 4;
  const std::string pager = random_pager();
  const Trace written = joined_ranks({{0, program}, {1, program}, {2, program}, {3, program}});
  const Trace folded = joined_ranks({{0, program, {1, 2, 3}}});
  RC_ASSERT(check(folded).empty());
  const SimulationResult all = paged(written, machine, pager), once = paged(folded, machine, pager);
  RC_CLASSIFY(!once.moves.empty());
  for (std::size_t r = 0; r < 4; ++r)
    require_same(all, once, r * program.ops.size(), r * program.storages.size(), program.storages.size());
  RC_ASSERT(all.fits == once.fits);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
