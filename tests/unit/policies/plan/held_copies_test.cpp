// Does a plan drop what lives across steps without a copy of its own where the step before has left one, and leave the
// next step one?
#include <gtest/gtest.h>

#include "policies/plan/plan_check.h"
#include "policies/plan/plan_writer.h"
#include "sim/trace/trace_check.h"
#include "tests/support/races.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/step_program.h"
#include "traces/plan/plan_file.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Weights are read in forward and backward, and changed by the optimizer.
class HeldCopies : public ::testing::Test {
 protected:
  HeldCopies() {
    StepProgram p;
    weights_ = p.preexisting(1000, StorageKind::parameter, "weights");
    a_ = p.make(100, "a"), forward_ = p.op("a", {weights_}, {a_});
    b_ = p.make(100, "b"), between_ = p.op("b", {a_}, {b_});
    p.drop(b_);
    p.backward();
    const StorageId gradient = p.make(1000, "gradient", StorageKind::gradient);
    backward_ = p.op("backward_a", {a_, weights_}, {gradient});
    p.drop(a_);
    p.optimizer();
    update_ = p.op("adam", {gradient, weights_}, {weights_});
    p.drop(gradient);
    step_ = std::move(p).finish();

    plan_.tiers.resize(1);
    plan_.tiers[0].tier = "host";
    decision_.storage = weights_;
    decision_.held = 0;
    decision_.drops.push_back({{forward_, true, 0}});
    decision_.fetches.push_back({{backward_, false, 0}, 0});
    decision_.copies.push_back({{update_, true, 0}, 0});
  }

  std::vector<std::string> problems() {
    plan_.storages = {decision_};
    return check_plan(plan_, step_, Dataflow(step_));
  }

  WrittenPlan write(Trace& written) {
    plan_.storages = {decision_};
    const Machine machine = test_machine();
    TraceEdit edit(step_, machine.host);
    const WrittenPlan bytes = write_plan(plan_, Dataflow(step_), *test_pricer(machine), edit);
    written = std::move(edit).apply();
    return bytes;
  }

  Trace step_;
  StorageId weights_ = 0, a_ = 0, b_ = 0;
  OpId forward_ = 0, between_ = 0, backward_ = 0, update_ = 0;
  MemoryPlan plan_;
  StorageDecision decision_;
};

TEST_F(HeldCopies, NeedNoCopyBeforeTheDrop) {
  EXPECT_EQ(problems(), std::vector<std::string>{});
  Trace written;
  const WrittenPlan bytes = write(written);
  EXPECT_EQ(bytes.bytes_out, 1000) << "what the optimizer has made, for the next step";
  EXPECT_EQ(bytes.bytes_in, 1000);
  EXPECT_EQ(check(written), std::vector<std::string>{});
  EXPECT_EQ(races(written, 2), std::vector<std::string>{});
  const std::vector<Bytes> live = live_bytes(written, StorageKind::parameter);
  for (OpId id = 0; id < written.ops.size(); ++id) {
    const std::string& kernel = written.strings[written.ops[id].name];
    if (kernel == "b_kernel") {
      EXPECT_EQ(live[id], 1000) << "on the host alone";
    } else if (kernel == "backward_a_kernel") {
      EXPECT_EQ(live[id], 2000);
    }
  }
  ASSERT_EQ(written.held_copies.size(), 1u);
  const Storage& copy = written.storages[written.held_copies[0].copy];
  EXPECT_EQ(written.held_copies[0].of, weights_);
  EXPECT_TRUE(copy.preexisting);
  EXPECT_EQ(copy.bytes, 1000);
  EXPECT_EQ(written.places[copy.place], "host");
  for (const Op& op : written.ops)
    EXPECT_FALSE(op.kind == OpKind::free && op.target == written.held_copies[0].copy) << "the next step's";
}

TEST_F(HeldCopies, HaveTheContentOfTheirStorage) {
  Trace written;
  write(written);
  const std::vector<std::uint64_t> hashes = producer_hashes(written), originals = producer_hashes(step_);
  const auto hash_of = [](const Trace& t, const std::vector<std::uint64_t>& all, const std::string& kernel) {
    for (OpId id = 0; id < t.ops.size(); ++id)
      if (t.strings[t.ops[id].name] == kernel) return all[id];
    return std::uint64_t{0};
  };
  const std::uint64_t expected = hash_of(step_, originals, "backward_a_kernel");
  EXPECT_EQ(hash_of(written, hashes, "backward_a_kernel"), expected);
  written.held_copies.clear();
  EXPECT_NE(hash_of(written, producer_hashes(written), "backward_a_kernel"), expected)
      << "anything of the host would do";
}

TEST_F(HeldCopies, WithoutOneTheDropLosesTheContent) {
  decision_.held = StorageDecision::kDevice;
  ASSERT_FALSE(problems().empty());
  EXPECT_NE(problems()[0].find("does not have its newest content"), std::string::npos) << problems()[0];
}

// A copy that was made before the last write is no copy of what the storage holds.
TEST_F(HeldCopies, OfAnOlderContentAreNoneToComeBackFrom) {
  const OpId end = static_cast<OpId>(step_.ops.size() - 1);
  decision_ = StorageDecision{};
  decision_.storage = weights_;
  decision_.copies.push_back({{forward_, true, 0}, 0});
  decision_.drops.push_back({{update_, true, 0}});
  decision_.fetches.push_back({{end, true, 0}, 0});
  ASSERT_EQ(problems().size(), 1u);
  EXPECT_NE(problems()[0].find("which does not have its newest content"), std::string::npos) << problems()[0];
  decision_.copies[0].at.op = update_;
  EXPECT_EQ(problems(), std::vector<std::string>{});
}

// What lives on may be copied, dropped and fetched behind its last use.
TEST_F(HeldCopies, MayBeMadeBehindTheLastUse) {
  const OpId end = static_cast<OpId>(step_.ops.size() - 1);
  ASSERT_GT(end, update_);
  decision_.copies[0].at = {end, true, 0};
  ASSERT_EQ(problems(), std::vector<std::string>{});
  Trace written;
  write(written);
  EXPECT_EQ(check(written), std::vector<std::string>{});
  decision_.held = StorageDecision::kDevice;  // the copy goes with the step
  decision_.drops.clear();
  decision_.fetches.clear();
  ASSERT_EQ(problems(), std::vector<std::string>{});
  write(written);
  EXPECT_EQ(check(written), std::vector<std::string>{});
}

TEST_F(HeldCopies, AreLeftForTheNextStepInTheirNewestContent) {
  decision_.copies.clear();
  ASSERT_EQ(problems().size(), 1u);
  EXPECT_NE(problems()[0].find("does not have its newest content in host at the end"), std::string::npos)
      << problems()[0];
}

TEST_F(HeldCopies, AreOfWhatLivesAcrossSteps) {
  decision_ = StorageDecision{};
  decision_.storage = a_;
  decision_.held = 0;
  decision_.drops.push_back({{between_, true, 0}});
  decision_.fetches.push_back({{backward_, false, 0}, 0});
  ASSERT_FALSE(problems().empty());
  EXPECT_NE(problems()[0].find("does not live from step to step"), std::string::npos) << problems()[0];
}

TEST_F(HeldCopies, StandNotBesideAHome) {
  decision_.home = 0;
  ASSERT_FALSE(problems().empty());
  EXPECT_NE(problems()[0].find("has a home tier and a copy beside it"), std::string::npos) << problems()[0];
}

// A buffer of sums, which each step sets to zero before anything reads it, may lie in the host's memory between steps
// without a copy; what a step begins by reading may not.
TEST_F(HeldCopies, WhatTheNextStepOverwritesNeedsNone) {
  for (const bool begins_at_zero : {true, false}) {
    StepProgram p;
    const StorageId sums = p.preexisting(1000, StorageKind::gradient, "sums");
    OpId first = begins_at_zero ? p.op("zero", {}, {sums}) : p.op("read", {sums}, {p.make(10, "of sums")});
    p.backward();
    p.op("add", {sums}, {sums});
    p.optimizer();
    const OpId last = p.op("adam", {sums}, {p.make(10, "new")});
    step_ = std::move(p).finish();
    decision_ = StorageDecision{};
    decision_.storage = sums;
    decision_.home = 0;
    decision_.fetches.push_back({{first, false, 0}, begins_at_zero ? PlannedFetch::kNoTier : std::uint8_t{0}});
    decision_.drops.push_back({{last, true, 0}});
    if (!begins_at_zero) {
      ASSERT_EQ(problems().size(), 1u);
      EXPECT_NE(problems()[0].find("does not have its newest content in host at the end"), std::string::npos);
      continue;
    }
    EXPECT_EQ(problems(), std::vector<std::string>{});
    Trace written;
    const WrittenPlan bytes = write(written);
    EXPECT_EQ(bytes.bytes_out + bytes.bytes_in, 0);
    EXPECT_EQ(check(written), std::vector<std::string>{});
    EXPECT_EQ(races(written, 2), std::vector<std::string>{});
  }
}

// Of what the step neither uses nor frees, the plan's own points are all there is.
TEST_F(HeldCopies, OfWhatNobodyUsesEndWithThePlan) {
  StorageDecision unused;
  unused.storage = static_cast<StorageId>(step_.storages.size());
  step_.storages.push_back(step_.storages[weights_]);
  unused.copies.push_back({{forward_, true, 0}, 0});
  unused.drops.push_back({{between_, true, 0}});
  unused.fetches.push_back({{update_, true, 0}, 0});
  plan_.storages = {unused};
  ASSERT_EQ(check_plan(plan_, step_, Dataflow(step_)), std::vector<std::string>{});
  decision_ = unused;
  Trace written;
  write(written);
  EXPECT_EQ(check(written), std::vector<std::string>{});
}

TEST_F(HeldCopies, AnOpThatTakesContentAwayIsNoneOfAPlansFile) {
  decision_ = StorageDecision{};
  decision_.storage = weights_;
  decision_.taken_away = true;
  decision_.drops.push_back({{update_, true, 0}});
  ASSERT_FALSE(problems().empty());
  EXPECT_NE(problems()[0].find("is said to be copied away by an op"), std::string::npos) << problems()[0];
}

TEST_F(HeldCopies, StandInThePlansFile) {
  plan_.storages = {decision_};
  const ScratchFolder folder;
  const std::string text = to_json(plan_, step_, "a test");
  write_content(folder / "a.plan", text);
  EXPECT_EQ(read_plan(folder / "a.plan", step_, test_machine()), plan_);
  EXPECT_NE(text.find("\"held\": \"host\""), std::string::npos) << text;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
