// Is what one re-run makes for another kept until then and no longer, and are plans refused that miss each other?
#include <gtest/gtest.h>

#include <algorithm>

#include "policies/plan/plan_check.h"
#include "policies/plan/plan_writer.h"
#include "tests/support/races.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/step_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// x, then a -> b -> c -> d; backward reads d, c and a. b is freed in forward.
class NestedReruns : public ::testing::Test {
 protected:
  NestedReruns() {
    StepProgram p;
    x_ = p.preexisting(1000, StorageKind::input, "x");
    a_ = p.make(100, "a"), p.op("a", {x_}, {a_});
    b_ = p.make(200, "b"), p.op("b", {a_}, {b_});
    c_ = p.make(400, "c"), p.op("c", {b_}, {c_});
    freed_b_ = p.drop(b_);
    d_ = p.make(800, "d"), p.op("d", {c_}, {d_});
    p.backward();
    reads_d_ = p.op("backward_d", {d_}, {});
    freed_d_ = p.drop(d_);
    reads_c_ = p.op("backward_c", {c_}, {});
    p.drop(c_);
    reads_a_ = p.op("backward_a", {a_}, {});
    p.drop(a_);
    p.optimizer();
    step_ = std::move(p).finish();
    for (OpId id = 0; id < step_.ops.size(); ++id)
      if (step_.ops[id].kind == OpKind::kernel) kernels_.push_back(id);
  }

  OpId op_a() const { return kernels_[0]; }
  OpId op_b() const { return kernels_[1]; }
  OpId op_c() const { return kernels_[2]; }
  OpId op_d() const { return kernels_[3]; }

  void drop(StorageId storage, PlanPoint at) {
    for (StorageDecision& d : plan_.storages)
      if (d.storage == storage) return d.drops.push_back({at});
    StorageDecision d;
    d.storage = storage;
    d.drops.push_back({at});
    plan_.storages.push_back(d);
  }

  std::vector<std::string> problems() const { return check_plan(plan_, step_, Dataflow(step_)); }

  Trace written() const {
    const Machine machine = test_machine();
    TraceEdit edit(step_, machine.host);
    const Dataflow flow(step_);
    write_plan(plan_, flow, *test_pricer(machine), edit);
    return std::move(edit).apply();
  }

  // Bytes of activations right before each kernel.
  static std::vector<Bytes> live_at_kernels(const Trace& t) {
    const std::vector<Bytes> live = live_bytes(t, StorageKind::activation);
    std::vector<Bytes> found;
    for (OpId id = 0; id < t.ops.size(); ++id)
      if (t.ops[id].kind == OpKind::kernel) found.push_back(live[id]);
    return found;
  }

  Trace step_;
  StorageId x_ = 0, a_ = 0, b_ = 0, c_ = 0, d_ = 0;
  OpId freed_b_ = 0, freed_d_ = 0, reads_d_ = 0, reads_c_ = 0, reads_a_ = 0;
  std::vector<OpId> kernels_;
  MemoryPlan plan_;
};

// Everything is dropped in forward; a, b, c and d are made again by a re-run each, one from the other, right before
// backward needs d. b, which the program has freed long since, lives for c alone.
TEST_F(NestedReruns, KeepWhatALaterOneStartsFromUntilItIsDropped) {
  drop(a_, {op_b(), true, 0});
  drop(b_, {op_c(), true, 0});
  drop(b_, {reads_d_, false, 3});
  drop(c_, {op_d(), true, 0});
  drop(d_, {op_d(), true, 0});
  plan_.reruns = {{{reads_d_, false, 0}, {op_a()}},
                  {{reads_d_, false, 1}, {op_b()}},
                  {{reads_d_, false, 2}, {op_c()}},
                  {{reads_d_, false, 4}, {op_d()}}};
  ASSERT_EQ(problems(), std::vector<std::string>{});
  const Trace after = written();
  EXPECT_EQ(check(after), std::vector<std::string>{});
  EXPECT_EQ(races(after), std::vector<std::string>{});
  expect_same_contents(step_, after);
  EXPECT_EQ(live_at_kernels(after), (std::vector<Bytes>{100, 300, 600, 1200, /* again: */ 100, 300, 700, 1300,
                                                        /* backward: */ 1300, 500, 100}));
  EXPECT_EQ(live_bytes(after, StorageKind::activation).back(), 0);
}

// a is made three times: for c's sake, for itself, and between as a by-product that is given back at once.
TEST_F(NestedReruns, MakeTheSameStorageAgainAndAgain) {
  drop(a_, {op_b(), true, 0});
  drop(a_, {reads_d_, false, 2});
  drop(b_, {op_c(), true, 0});
  drop(c_, {op_d(), true, 0});
  plan_.reruns = {{{reads_d_, false, 0}, {op_a()}},
                  {{reads_d_, false, 1}, {op_b(), op_c()}},
                  {{reads_c_, false, 0}, {op_a(), op_b()}},
                  {{reads_a_, false, 0}, {op_a()}}};
  ASSERT_EQ(problems(), std::vector<std::string>{});
  const Trace after = written();
  EXPECT_EQ(check(after), std::vector<std::string>{});
  expect_same_contents(step_, after);
  EXPECT_EQ(live_at_kernels(after),
            (std::vector<Bytes>{100, 300, 600, 1200, /* d lives: */ 900, 1100, 1500, /* d, c: */ 1200,
                                /* a and b beside c, for nothing: */ 500, 700, 400, /* a: */ 100, 100}));
}

// A later re-run makes c anew before backward reads it: the first does not keep it.
TEST_F(NestedReruns, KeepNothingThatIsMadeAgainBeforeItsUse) {
  drop(c_, {op_d(), true, 0});
  plan_.reruns = {{{reads_d_, false, 0}, {op_c()}}, {{reads_c_, false, 0}, {op_c()}}};
  ASSERT_EQ(problems(), std::vector<std::string>{});
  EXPECT_EQ(live_at_kernels(written())[5], 1100);  // before d's backward: a, d and b, which both start from; no c
}

TEST_F(NestedReruns, AreRefusedWhereTheyMissEachOther) {
  const MemoryPlan none = plan_;
  const auto refusal = [&] {
    const std::vector<std::string> found = problems();
    return found.empty() ? "" : found.front();
  };
  drop(b_, {op_c(), true, 0});
  plan_.reruns = {{{reads_d_, false, 0}, {op_b()}}, {{reads_c_, false, 0}, {op_c()}}};
  EXPECT_NE(refusal().find("is made again behind the program's free of it, and never dropped"), std::string::npos)
      << refusal();
  drop(b_, {reads_c_, false, 1});
  EXPECT_EQ(refusal(), "");
  plan_.reruns[0].at = {reads_c_, false, 2};  // behind the one that starts from it
  EXPECT_NE(refusal().find("which is not in device memory then"), std::string::npos) << refusal();
  plan_ = none;
  drop(c_, {op_d(), true, 0});  // made at d's backward, dropped there: then nobody has kept it
  drop(c_, {reads_d_, true, 0});
  plan_.reruns = {{{reads_d_, false, 0}, {op_c()}}, {{reads_c_, false, 0}, {op_c()}}};
  EXPECT_NE(refusal().find("is dropped at"), std::string::npos) << refusal();
}

TEST_F(NestedReruns, RepeatWorkAlone) {
  drop(d_, {op_d(), true, 0});
  for (const OpKind kind : {OpKind::alloc, OpKind::free, OpKind::mark}) {
    OpId id = 0;
    while (step_.ops[id].kind != kind) ++id;
    for (const bool called : {false, true}) {
      plan_.reruns = {{{reads_d_, false, 0}, {op_d()}}};
      (called ? plan_.reruns[0].called : plan_.reruns[0].ops).push_back(id);
      std::ranges::sort(plan_.reruns[0].ops);
      ASSERT_EQ(problems().size(), 1u) << to_string(kind);
      EXPECT_NE(problems()[0].find("which is no work of the device or the host: "), std::string::npos) << problems()[0];
    }
  }
}

// A re-run that starts, on a stream of its own, from what another has made: ordered behind it, and its memory's next
// owner behind both.
TEST(NestedRerunsOnTwoStreams, AreFreeOfRaces) {
  StepProgram p;
  const std::uint16_t side = p.builder().add_stream("side", StreamRole::compute);
  const auto order = [&](std::uint16_t first, std::uint16_t second) {
    const std::uint32_t event = p.builder().add_event();
    p.on_stream(first);
    Op record = p.here(OpKind::event_record);
    record.target = event;
    p.builder().append(record);
    p.on_stream(second);
    Op wait = p.here(OpKind::event_wait);
    wait.target = event;
    p.builder().append(wait);
  };
  const StorageId x = p.preexisting(1000, StorageKind::input, "x");
  const StorageId a = p.make(100, "a");
  const OpId op_a = p.op("a", {x}, {a});
  p.on_stream(side);
  const StorageId b = p.make(200, "b");
  order(0, side);
  const OpId op_b = p.op("b", {a}, {b});
  order(side, 0);
  p.drop(a);
  p.backward();
  const StorageId before = p.make(100, "before");
  const OpId first = p.op("backward", {}, {before});
  p.drop(before);
  order(0, side);
  const OpId reads_b = p.op("backward_b", {b}, {});
  order(side, 0);
  const StorageId reuse = p.make(100, "reuse");
  p.op("reuse", {}, {reuse});
  p.drop(reuse);
  p.on_stream(side);
  p.drop(b);
  const Trace step = std::move(p).finish();
  ASSERT_EQ(races(step), std::vector<std::string>{});
  MemoryPlan plan;
  plan.storages.resize(2);
  plan.storages[0].storage = a;
  plan.storages[0].drops = {{{op_b + 2, true, 0}}, {{reads_b, false, 2}}};
  plan.storages[1].storage = b;
  plan.storages[1].drops = {{{op_b, true, 0}}};
  plan.reruns = {{{first, false, 0}, {op_a}}, {{reads_b, false, 1}, {op_b}}};
  const Dataflow flow(step);
  ASSERT_EQ(check_plan(plan, step, flow), std::vector<std::string>{});
  const Machine machine = test_machine();
  TraceEdit edit(step, machine.host);
  write_plan(plan, flow, *test_pricer(machine), edit);
  const Trace after = std::move(edit).apply();
  EXPECT_EQ(check(after), std::vector<std::string>{});
  EXPECT_EQ(races(after), std::vector<std::string>{});
}

// b, which the program frees in forward, is kept for a re-run of c and d alone: it goes when c has been made from it,
// and d is made without it.
TEST_F(NestedReruns, GiveBackWhatWasKeptForThemBehindItsLastUse) {
  drop(c_, {op_d(), true, 0});
  drop(d_, {op_d(), true, 0});
  plan_.reruns = {{{reads_d_, false, 0}, {op_c(), op_d()}}};
  ASSERT_EQ(problems(), std::vector<std::string>{});
  const Trace after = written();
  EXPECT_EQ(check(after), std::vector<std::string>{});
  expect_same_contents(step_, after);
  EXPECT_EQ(live_at_kernels(after),
            (std::vector<Bytes>{100, 300, 700, 1500, /* again: */ 700, 1300, /* backward: */ 1300, 500, 100}));
  // Kept longer by the plan, it stays.
  plan_.keeps = {{b_, {reads_c_, true, 0}}};
  EXPECT_EQ(live_at_kernels(written()),
            (std::vector<Bytes>{100, 300, 700, 1500, /* again: */ 700, 1500, /* backward: */ 1500, 700, 100}));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
