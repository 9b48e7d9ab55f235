// Which ops make a storage again? On a chain that is written down: a -> b (in place) -> c, with a branch.
#include "policies/planners/rerun_chain.h"

#include <gtest/gtest.h>

#include "tests/support/step_program.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace {

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
  std::optional<RerunChain> chain(StorageId storage, const std::set<StorageId>& absent = {}, std::size_t most = 64) {
    return rerun_chain(
        *profile, storage, back, [&](StorageId s) { return absent.contains(s); }, most);
  }
};

TEST(RerunChainTest, StartsFromWhatIsThere) {
  Branch step;
  const auto chain = step.chain(step.c);
  ASSERT_TRUE(chain);
  EXPECT_EQ(chain->ops, std::vector<OpId>{step.make_c});
  EXPECT_EQ(chain->inputs, std::vector<StorageId>{step.b});
  EXPECT_EQ(chain->outputs, std::vector<StorageId>{step.c});
  EXPECT_EQ(chain->time, microseconds(1));
}

TEST(RerunChainTest, TakesAllThatWroteInPlace) {
  Branch step;
  const auto chain = step.chain(step.b);
  ASSERT_TRUE(chain);
  EXPECT_EQ(chain->ops, (std::vector<OpId>{step.make_b, step.relu}));
  EXPECT_EQ(chain->time, microseconds(4));
}

TEST(RerunChainTest, GoesBackBehindWhatIsAbsentOrFreed) {
  Branch absent;
  EXPECT_EQ(absent.chain(absent.c, {absent.b})->ops, (std::vector<OpId>{absent.make_b, absent.relu, absent.make_c}));
  Branch freed(false);
  EXPECT_EQ(freed.chain(freed.b)->ops, (std::vector<OpId>{freed.make_a, freed.make_b, freed.relu}));
  EXPECT_EQ(freed.chain(freed.b)->inputs, std::vector<StorageId>{freed.weight});
}

TEST(RerunChainTest, EndsAtWhatCannotBeMadeAgain) {
  Branch overwritten(false, true);
  EXPECT_FALSE(overwritten.chain(overwritten.b)) << "the weight that `first` read is gone";
  Branch communicating(true, false, true);
  EXPECT_FALSE(communicating.chain(communicating.b));
  Branch step;
  EXPECT_FALSE(step.chain(step.weight)) << "no op of forward wrote it";
  EXPECT_FALSE(step.chain(step.b, {}, 1)) << "two ops";
}

}  // namespace
}  // namespace memwall
