#include "policies/trace/trace_edit.h"

#include <gtest/gtest.h>

#include "sim/trace/trace_check.h"
#include "tests/support/step_program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const HostCosts kFree{};

// Three kernels in a row; backward reads what the first has made.
struct Step {
  StorageId x = 0, y = 0;
  OpId a = 0, b = 0, c = 0, d = 0;
  Trace trace;

  Step() {
    StepProgram p;
    x = p.make(64, "x");
    y = p.make(64, "y");
    a = p.op("a", {}, {x});
    b = p.op("b", {x}, {y});
    c = p.op("c", {y}, {y});
    p.backward();
    d = p.op("d", {x, y}, {});
    p.drop(x);
    p.drop(y);
    trace = std::move(p).finish();
    trace.ops[d].source = b;
  }
};

TEST(TraceEdit, AnOpIsReplacedWithOtherUses) {
  const Step step;
  TraceEdit edit(step.trace, kFree);
  Op by = step.trace.ops[step.c];
  by.bytes = 7;
  edit.replace(step.c, by, {{step.x, 0, Access::read}});
  const Trace after = std::move(edit).apply();
  EXPECT_EQ(check(after), std::vector<std::string>{});
  EXPECT_EQ(after.ops[step.c].bytes, 7);
  EXPECT_EQ(after.ops[step.c].use_count, 1);
  EXPECT_EQ(after.uses_of(after.ops[step.d])[1].version, 1u);  // c made the second
}

TEST(TraceEdit, WhatNamesARemovedOpNamesItsHeir) {
  const Step step;
  TraceEdit edit(step.trace, kFree);
  edit.remove(step.b, step.c);
  edit.replace(step.c, step.trace.ops[step.c], {{step.x, 0, Access::read}, {step.y, 0, Access::write}});
  const Trace after = std::move(edit).apply();
  EXPECT_EQ(check(after), std::vector<std::string>{});
  EXPECT_EQ(after.ops[step.d - 1].source, step.c - 1);
}

TEST(TraceEdit, ACompleteOpStandsAsItIsAndFollowsTheNumbers) {
  const Step step;
  TraceEdit edit(step.trace, kFree);
  Op again = step.trace.ops[step.a];
  again.phase = Phase::recompute;
  again.source = step.a;
  edit.insert_complete({step.a, true}, again, {{step.x, 0, Access::write}});
  const Trace after = std::move(edit).apply();
  EXPECT_EQ(check(after), std::vector<std::string>{});
  EXPECT_EQ(after.ops[step.a + 1].phase, Phase::recompute);
  EXPECT_EQ(after.ops[step.a + 1].source, step.a);
  EXPECT_EQ(after.ops[step.d + 1].source, step.b + 1);
  EXPECT_FALSE(after.ops[step.a + 1].added);
}

TEST(TraceEdit, NumbersOfAllOpsChangeWhereTheyStand) {
  const Step step;
  TraceEdit edit(step.trace, kFree);
  edit.resize(step.y, 128);
  const Trace after = std::move(edit).apply([](OpId, Op& op) { op.bytes = 5; });
  EXPECT_EQ(after.storages[step.y].bytes, 128);
  ASSERT_EQ(after.ops.size(), step.trace.ops.size());
  EXPECT_EQ(after.uses.size(), step.trace.uses.size());
  for (const Op& op : after.ops) EXPECT_EQ(op.bytes, 5);
}

// An op that reads `storages` storages, each of which changes hands twice.
std::vector<StorageId> repointed_twice(std::size_t storages) {
  StepProgram p;
  std::vector<StorageId> first, second, third;
  for (auto* list : {&first, &second, &third})
    for (std::size_t i = 0; i < storages; ++i)
      list->push_back(p.preexisting(64, StorageKind::parameter, std::to_string(i)));
  std::vector<Use> uses;
  for (const StorageId id : first) uses.push_back({id, 0, Access::read});
  const OpId wide = p.op("wide", {}, {});
  const Trace step = std::move(p).finish();
  TraceEdit edit(step, kFree);
  edit.insert_complete({wide, false}, step.ops[wide], std::move(uses));
  const Trace base = std::move(edit).apply();
  TraceEdit changes(base, kFree);
  for (std::size_t i = 0; i < storages; ++i) {
    changes.repoint(wide, first[i], second[i]);
    changes.repoint(wide, second[i], third[storages - 1 - i]);
    changes.repoint(wide, first[i], second[i]);  // of which there is none any more
  }
  const Trace after = std::move(changes).apply();
  EXPECT_EQ(check(after), std::vector<std::string>{});
  std::vector<StorageId> read;
  for (const Use& use : after.uses_of(after.ops[wide])) read.push_back(use.storage - third.front());
  return read;
}

TEST(TraceEdit, UsesChangeHandsOneAfterTheOtherHoweverManyThereAre) {
  for (const std::size_t storages : {1u, 3u, 100u}) {
    const std::vector<StorageId> read = repointed_twice(storages);
    ASSERT_EQ(read.size(), storages);
    for (std::size_t i = 0; i < storages; ++i) EXPECT_EQ(read[i], storages - 1 - i);
  }
}

TEST(TraceEdit, AnOpUsesMoreStoragesThanSixteenBitsCount) {
  const std::vector<StorageId> read = repointed_twice(70'000);
  ASSERT_EQ(read.size(), 70'000u);
  EXPECT_EQ(read.front(), 69'999u);
}

// Of what an edit adds nobody knows when the program refers to it last.
TEST(TraceEdit, TheEndOfReferencesFollowsTheNumbers) {
  Step step;
  step.trace.storages[step.x].last_referenced = step.b;
  TraceEdit edit(step.trace, kFree);
  Op extra;
  extra.kind = OpKind::mark;
  edit.insert({step.a, false}, extra);
  edit.tables().storages.push_back(step.trace.storages[step.x]);
  const Trace after = std::move(edit).apply();
  EXPECT_EQ(after.storages[step.x].last_referenced, step.b + 1);
  EXPECT_EQ(after.storages[step.y].last_referenced, kNoOp);
  EXPECT_EQ(after.storages.back().last_referenced, kNoOp);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
