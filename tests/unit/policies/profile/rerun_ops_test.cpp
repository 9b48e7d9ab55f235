// Which ops make a storage again? On ops that are written down: a -> b (in place) -> c, with a branch.
#include "policies/profile/rerun_ops.h"

#include <gtest/gtest.h>

#include "tests/support/step_program.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

struct Branch {
  StorageId weight = 0, a = 0, b = 0, c = 0;
  OpId make_a = 0, make_b = 0, relu = 0, make_c = 0, back = 0;
  Trace trace;
  Machine machine = test_machine();
  std::optional<StepProfile> profile;

  explicit Branch(bool a_lives = true, bool weight_changes = false, bool collective = false) {
    StepProgram p;
    weight = p.preexisting(100, StorageKind::parameter, "weight");
    a = p.make(100, "a");
    make_a = p.op("first", {weight}, {a});
    b = p.make(100, "b");
    Op cost;
    cost.duration = microseconds(3);
    if (collective) cost.kind = OpKind::collective;
    make_b = p.op("second", {a}, {b}, cost);
    relu = p.op("relu_", {b}, {b});
    c = p.make(100, "c");
    make_c = p.op("third", {b}, {c});
    if (!a_lives) p.drop(a);
    if (weight_changes) p.op("norm", {}, {weight});
    p.backward();
    back = p.op("back", {c, b}, {});
    p.drop(c);
    p.drop(b);
    if (a_lives) p.drop(a);
    p.optimizer();
    p.op("update", {}, {});
    trace = std::move(p).finish();
    profile.emplace(trace, machine);
  }
  std::optional<RerunOps> again(StorageId storage, const std::set<StorageId>& absent = {}, std::size_t most = 64) {
    return rerun_ops(
        *profile, storage, back, [&](StorageId s) { return absent.contains(s); }, most);
  }
};

TEST(RerunOpsTest, StartsFromWhatIsThere) {
  Branch step;
  const auto rerun = step.again(step.c);
  ASSERT_TRUE(rerun);
  EXPECT_EQ(rerun->ops, std::vector<OpId>{step.make_c});
  EXPECT_EQ(rerun->inputs, std::vector<StorageId>{step.b});
  EXPECT_EQ(rerun->outputs, std::vector<StorageId>{step.c});
  EXPECT_EQ(rerun->time, microseconds(1));
}

TEST(RerunOpsTest, TakesAllThatWroteInPlace) {
  Branch step;
  const auto rerun = step.again(step.b);
  ASSERT_TRUE(rerun);
  EXPECT_EQ(rerun->ops, (std::vector<OpId>{step.make_b, step.relu}));
  EXPECT_EQ(rerun->time, microseconds(4));
}

TEST(RerunOpsTest, GoesBackBehindWhatIsAbsentOrFreed) {
  Branch absent;
  EXPECT_EQ(absent.again(absent.c, {absent.b})->ops, (std::vector<OpId>{absent.make_b, absent.relu, absent.make_c}));
  Branch freed(false);
  EXPECT_EQ(freed.again(freed.b)->ops, (std::vector<OpId>{freed.make_a, freed.make_b, freed.relu}));
  EXPECT_EQ(freed.again(freed.b)->inputs, std::vector<StorageId>{freed.weight});
}

TEST(RerunOpsTest, EndsAtWhatCannotBeMadeAgain) {
  Branch overwritten(false, true);
  EXPECT_FALSE(overwritten.again(overwritten.b)) << "the weight that `first` read is gone";
  Branch communicating(true, false, true);
  EXPECT_FALSE(communicating.again(communicating.b));
  Branch step;
  EXPECT_FALSE(step.again(step.weight)) << "no op of forward wrote it";
  EXPECT_FALSE(step.again(step.b, {}, 1)) << "two ops";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
