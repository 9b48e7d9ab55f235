// Do re-runs read gathered parameters where the plan has moved those, and are plans refused in which what stands in for
// them is away?
#include <gtest/gtest.h>

#include "policies/plan/plan_check.h"
#include "policies/plan/plan_writer.h"
#include "tests/support/races.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/step_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// The slice becomes `whole`, of which `embed` makes `result`. `again` is the same slice gathered a second time, behind
// that; backward uses the result and gives all back.
class MovedGathers : public ::testing::Test {
 protected:
  explicit MovedGathers(bool is_given_back = false) {
    StepProgram p;
    const StorageId slice = p.preexisting(1000, StorageKind::parameter, "weight");
    Op gather;
    gather.kind = OpKind::collective, gather.collective = CollectiveKind::all_gather;
    whole_ = p.make(4000, "weight", StorageKind::parameter);
    p.op("gather", {slice}, {whole_}, gather);
    result_ = p.make(8000, "result");
    embeds_ = p.op("embed", {whole_}, {result_});
    if (is_given_back) p.drop(whole_);
    again_ = p.make(4000, "weight", StorageKind::parameter);
    gathers_again_ = p.op("gather", {slice}, {again_}, gather);
    p.op("work", {slice}, {});
    p.backward();
    works_ = p.op("work", {slice}, {});
    uses_ = p.op("backward", {result_, again_}, {});
    p.drop(result_);
    p.drop(again_);
    if (!is_given_back) p.drop(whole_);
    p.optimizer();
    step_ = std::move(p).finish();
    StorageDecision result;
    result.storage = result_;
    result.drops.push_back({{embeds_, true, 0}});
    plan_.storages.push_back(result);
    plan_.reruns.push_back({{uses_, false, 5}, {embeds_}});
    plan_.tiers.emplace_back().tier = "host";
  }

  // Moved behind `last`, and back before `first`.
  void move(StorageId storage, OpId last, OpId first) {
    StorageDecision d;
    d.storage = storage;
    d.copies.push_back({{last, true, 0}, 0});
    d.drops.push_back({{last, true, 1}});
    d.fetches.push_back({{first, false, 0}, 0});
    plan_.storages.push_back(d);
  }

  std::vector<std::string> problems() const { return check_plan(plan_, step_, Dataflow(step_)); }

  void expect_sound() const {
    EXPECT_EQ(problems(), std::vector<std::string>{});
    const Machine machine = test_machine();
    TraceEdit edit(step_, machine.host);
    const Dataflow flow(step_);
    write_plan(plan_, flow, *test_pricer(machine), edit);
    const Trace written = std::move(edit).apply();
    EXPECT_EQ(check(written), std::vector<std::string>{});
    EXPECT_EQ(races(written), std::vector<std::string>{});
    const std::vector<std::uint64_t> hashes = producer_hashes(written);
    for (OpId id = 0; id < written.ops.size(); ++id)
      if (written.ops[id].phase == Phase::recompute && written.ops[id].source != kNoOp) {
        EXPECT_EQ(hashes[id], hashes[written.ops[id].source]);
      }
    EXPECT_EQ(count(written, Phase::recompute), 1u);
  }

  StorageId whole_ = 0, again_ = 0, result_ = 0;
  OpId embeds_ = 0, gathers_again_ = 0, works_ = 0, uses_ = 0;
  Trace step_;
  MemoryPlan plan_;
};

TEST_F(MovedGathers, AreReadWhereTheyCameBack) {
  move(whole_, embeds_, works_);
  expect_sound();
}

TEST_F(MovedGathers, AreReadWhereTheyCameBackRightBefore) {
  move(whole_, embeds_, uses_);
  expect_sound();
}

struct GivenBackGathers : MovedGathers {
  GivenBackGathers() : MovedGathers(true) {}
};

TEST_F(GivenBackGathers, AreReadInWhatStandsInForThem) { expect_sound(); }

TEST_F(GivenBackGathers, AreReadInWhatStandsInForThemWhereThatCameBack) {
  move(again_, gathers_again_, works_);
  expect_sound();
}

TEST_F(GivenBackGathers, AreNotReadWhereWhatStandsInForThemIsAway) {
  move(again_, gathers_again_, uses_);
  plan_.storages.back().fetches[0].at.order = 9;  // behind the re-run
  const std::vector<std::string> found = problems();
  ASSERT_FALSE(found.empty());
  EXPECT_NE(found[0].find("which is not in device memory then"), std::string::npos) << found[0];
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
