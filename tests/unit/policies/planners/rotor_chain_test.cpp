// Is the schedule of a chain the fastest persistent one, and does it keep to its memory?
#include "policies/planners/rotor_chain.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/support/persistent_schedules.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::optional<std::int64_t> time_of(const RotorChain& chain, Bytes limit) {
  const auto schedule = RotorTable(chain, limit, std::max(1u, static_cast<std::uint32_t>(limit))).schedule();
  return schedule ? std::optional(schedule->time.count()) : std::nullopt;
}

// As in the paper: an output of a size, all of it for backward; one overhead for either forward; gradients as outputs.
RotorStage paper_stage(std::int64_t forward, std::int64_t backward, Bytes output, Bytes saved, Bytes forward_overhead,
                       Bytes backward_overhead, Bytes output_before) {
  RotorStage s;
  s.forward = s.forward_last = Duration(forward);
  s.backward = Duration(backward);
  s.output_saved = s.gradient = output;
  s.saved = saved;
  s.while_passing = output + forward_overhead;
  s.while_saving = saved + forward_overhead;
  s.while_backward = saved + output + output_before + backward_overhead;
  return s;
}

RotorChain random_paper_chain(std::size_t stages) {
  RotorChain chain;
  Bytes before = 1;
  for (std::size_t i = 0; i < stages; ++i) {
    const Bytes output = *rc::gen::inRange<Bytes>(1, 5);
    chain.stages.push_back(paper_stage(*rc::gen::inRange(1, 6), *rc::gen::inRange(1, 6), output,
                                       output + *rc::gen::inRange<Bytes>(0, 7), *rc::gen::inRange<Bytes>(0, 3),
                                       *rc::gen::inRange<Bytes>(0, 3), before));
    before = output;
  }
  return chain;
}

RotorChain random_chain(std::size_t stages) {
  RotorChain chain;
  chain.input_passed = *rc::gen::inRange<Bytes>(0, 4);
  const bool own_forward = *rc::gen::arbitrary<bool>();
  Bytes passed = chain.input_passed;
  for (std::size_t i = 0; i < stages; ++i) {
    RotorStage s;
    s.forward = Duration(*rc::gen::inRange(1, 6));
    s.forward_last = Duration(*rc::gen::inRange<std::int64_t>(0, s.forward.count() + 1));
    s.backward = Duration(*rc::gen::inRange(1, 6));
    s.output_saved = *rc::gen::inRange<Bytes>(0, 4);
    s.output_passed = *rc::gen::inRange<Bytes>(0, 4);
    s.saved = s.output_saved + *rc::gen::inRange<Bytes>(0, 7);
    s.gradient = *rc::gen::inRange<Bytes>(0, 4);
    s.while_passing = s.output_saved + s.output_passed + *rc::gen::inRange<Bytes>(0, 3);
    s.while_saving = s.saved + s.output_passed + *rc::gen::inRange<Bytes>(0, 3);
    s.while_backward = s.saved + *rc::gen::inRange<Bytes>(0, 5);
    if (*rc::gen::inRange(0, 12) == 0) s.while_passing = RotorStage::kNever;
    if (*rc::gen::arbitrary<bool>()) s.while_last = *rc::gen::inRange<Bytes>(0, s.while_saving + 1);
    if (own_forward) {
      s.first_saving = s.saved + *rc::gen::inRange<Bytes>(0, 5);
      s.first_passing_alone = s.output_saved + s.output_passed + *rc::gen::inRange<Bytes>(0, 3);
      s.first_passing = s.first_passing_alone + *rc::gen::inRange<Bytes>(0, passed + 1);
      if (s.while_passing == RotorStage::kNever) s.first_passing_alone = s.first_passing = RotorStage::kNever;
      passed = s.output_passed;
    }
    chain.stages.push_back(s);
  }
  return chain;
}

Bytes all_saved(const RotorChain& chain) {
  Bytes bytes = chain.input_passed + 10;
  for (const RotorStage& s : chain.stages) bytes += s.saved + s.output_passed;
  return bytes;
}

RC_GTEST_PROP(RotorChainProperty, IsTheFastestPersistentScheduleOfThePapersChains, ()) {
  const RotorChain chain = random_paper_chain(*rc::gen::inRange<std::size_t>(1, 9));
  const Bytes limit = *rc::gen::inRange<Bytes>(1, all_saved(chain));
  const auto time = time_of(chain, limit);
  RC_ASSERT(time == PersistentSchedules(chain, limit, true).fastest());
  // Nor is any other persistent one faster: their theorem. There are too many of them in longer chains.
  if (chain.stages.size() < 7) RC_ASSERT(time == PersistentSchedules(chain, limit, false).fastest());
}

RC_GTEST_PROP(RotorChainProperty, IsTheFastestPersistentScheduleOfOurChains, ()) {
  const RotorChain chain = random_chain(*rc::gen::inRange<std::size_t>(1, 9));
  const Bytes limit = *rc::gen::inRange<Bytes>(1, all_saved(chain));
  const auto time = time_of(chain, limit);
  RC_CLASSIFY(time.has_value(), "possible");
  RC_ASSERT(time == PersistentSchedules(chain, limit, true).fastest());
}

// More memory takes no longer; the least memory is the least; fewer slots keep to the limit and take no less time.
RC_GTEST_PROP(RotorChainProperty, MemoryAndSlotsAreMonotonous, ()) {
  const RotorChain chain = random_chain(*rc::gen::inRange<std::size_t>(1, 9));
  const Bytes limit = all_saved(chain);
  std::optional<std::int64_t> before;
  Bytes least = 0;
  for (Bytes m = 0; m <= limit; ++m) {
    const auto time = time_of(chain, m);
    RC_ASSERT(!before || (time && *time <= *before));
    if (!time) least = m + 1;
    before = time;
  }
  const auto found = RotorTable(chain, limit, static_cast<std::uint32_t>(limit)).least_memory();
  RC_ASSERT(found.has_value() == (least <= limit));
  if (found) RC_ASSERT(*found == least);
  const auto slots = *rc::gen::inRange<std::uint32_t>(1, 30);
  const Bytes some = *rc::gen::inRange<Bytes>(1, limit + 1);
  const auto coarse = RotorTable(chain, some, slots).schedule();
  RC_ASSERT(!coarse || coarse->time.count() >= *time_of(chain, some));
}

RotorChain homogeneous(std::size_t stages, Bytes saved) {
  RotorChain chain;
  for (std::size_t i = 0; i < stages; ++i) {
    RotorStage s;
    s.forward = s.forward_last = Duration(1);
    s.output_saved = s.while_passing = 1;
    s.saved = s.while_saving = s.while_backward = saved;
    chain.stages.push_back(s);
  }
  return chain;
}

std::int64_t binomial(std::int64_t n, std::int64_t k) {
  if (k < 0 || n < k) return 0;
  std::int64_t value = 1;
  for (std::int64_t i = 1; i <= k; ++i) value = value * (n - k + i) / i;
  return value;
}

// Griewank & Walther 2000, "Algorithm 799: Revolve": l steps with c checkpoints, of which the input is
// one, take at least r l - beta(c + 1, r - 1) forward steps besides those that backward follows at once, where beta(c,
// r) = binomial(c + r, c) and r is the least with l <= beta(c, r).
std::int64_t revolve(std::int64_t l, std::int64_t c) {
  const auto beta = [](std::int64_t checkpoints, std::int64_t repetitions) {
    return repetitions < 0 ? 0 : binomial(checkpoints + repetitions, checkpoints);
  };
  std::int64_t r = 0;
  while (l > beta(c, r)) ++r;
  return r * l - beta(c + 1, r - 1);
}

TEST(RotorChain, TakesAsManyForwardStepsAsRevolveOnEqualStages) {
  EXPECT_EQ(revolve(10, 3), 15);  // by hand: r = 2, beta(3, 2) = 10, 20 - beta(4, 1)
  for (std::int64_t l = 1; l <= 40; ++l)
    for (std::int64_t c = 1; c <= 8; ++c) {
      // Of one stage at a time, no second. Beside it c - 1 checkpoints, as the input is not counted, and the stage's
      // input.
      const Bytes saved = 50;
      const auto time = time_of(homogeneous(static_cast<std::size_t>(l), saved), saved + c);
      ASSERT_TRUE(time) << l << " " << c;
      EXPECT_EQ(*time, revolve(l, c) + l) << l << " steps, " << c << " checkpoints";
    }
}

TEST(RotorChain, SavesEverythingOnceWhereThereIsRoom) {
  const RotorChain chain = homogeneous(5, 3);
  const auto schedule = RotorTable(chain, 15, 15).schedule();
  ASSERT_TRUE(schedule);
  using Kind = RotorStep::Kind;
  std::vector<RotorStep> expected;
  for (std::uint32_t k = 0; k < 5; ++k) expected.push_back({Kind::forward_saving, k});
  for (std::uint32_t k = 5; k-- > 0;) expected.push_back({Kind::backward, k});
  EXPECT_EQ(schedule->steps, expected);
  EXPECT_FALSE(RotorTable(chain, 2, 2).schedule());
  EXPECT_FALSE(RotorTable(chain, 2, 2).least_memory());
}

// Stage 0 is dear and small, stage 1 cheap and large: with room for 0's and one other, 0 is kept and 1 run again.
TEST(RotorChain, KeepsWhatIsDearAndSmall) {
  RotorChain chain = homogeneous(3, 10);
  chain.stages[0].saved = chain.stages[0].while_saving = chain.stages[0].while_backward = 2;
  chain.stages[0].forward = chain.stages[0].forward_last = Duration(100);
  using Kind = RotorStep::Kind;
  const auto schedule = RotorTable(chain, 13, 13).schedule();
  ASSERT_TRUE(schedule);
  EXPECT_EQ(schedule->steps, (std::vector<RotorStep>{{Kind::forward_saving, 0},
                                                     {Kind::forward, 1},
                                                     {Kind::forward_saving, 2},
                                                     {Kind::backward, 2},
                                                     {Kind::forward_saving, 1},
                                                     {Kind::backward, 1},
                                                     {Kind::backward, 0}}));
  EXPECT_EQ(schedule->time.count(), 103);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
