// What a memset zeroes whose op carries the storages of its operator.
#include "validate/replay/memset_targets.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/trace/trace_builder.h"
#include "sim/trace/trace_check.h"
#include "tests/support/execute_numbered.h"
#include "tests/support/program.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/scripted_backend.h"
#include "tests/support/shared_data.h"
#include "validate/replay/execution.h"
#include "validate/replay/schedule.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// An operator that reads `input` and writes `output` and `other`, whose memsets carry all three, as captures have them.
struct Operator {
  TraceBuilder b;
  StorageId input = kNoStorage, output = kNoStorage, other = kNoStorage;

  Operator() {
    b.trace().name = "operator";
    b.add_thread("main");
    b.add_stream("compute", StreamRole::compute);
    input = b.add_storage(4096, StorageKind::activation, "hbm", "input", true);
    output = b.add_storage(1024, StorageKind::gradient, "hbm", "output");
    other = b.add_storage(2048, StorageKind::gradient, "hbm", "other");
    b.alloc(output, 0);
    b.alloc(other, 0);
    b.trace().knowledge.dataflow = true;
  }

  OpId launch(OpKind kind, Bytes bytes, std::vector<Use> uses) {
    Op op;
    op.kind = kind;
    op.bytes = bytes;
    op.duration = microseconds(2);
    return b.append(op, uses);
  }
  Use read(StorageId storage) const { return {storage, TraceBuilder::kLatest, Access::read}; }
  static Use write(StorageId storage) { return {storage, 0, Access::write}; }

  OpId memset(Bytes bytes) { return launch(OpKind::memset, bytes, {read(input), write(output), write(other)}); }
  OpId kernel() { return launch(OpKind::kernel, 4096, {read(input), write(output), write(other)}); }
  OpId reader(StorageId storage) { return launch(OpKind::kernel, 64, {read(storage)}); }
  Trace finish() { return std::move(b).finish(); }
};

// The label of what op `id` of the schedule writes, with its bytes.
std::string written(const Trace& schedule, OpId id) {
  const auto uses = schedule.uses_of(schedule.ops[id]);
  if (uses.size() != 1 || uses[0].access != Access::write) return "?";
  const Storage& storage = schedule.storages[uses[0].storage];
  return schedule.strings[storage.label] + " " + std::to_string(schedule.ops[id].bytes);
}

std::vector<OpId> of_kind(const Trace& schedule, OpKind kind) {
  std::vector<OpId> found;
  for (OpId id = 0; id < schedule.ops.size(); ++id)
    if (schedule.ops[id].kind == kind) found.push_back(id);
  return found;
}

TEST(MemsetTargets, TheStorageOfItsSizeIsZeroed) {
  Operator o;
  o.memset(2048);
  o.kernel();
  o.reader(o.other);
  const Trace schedule = schedule_of(o.finish());
  const std::vector<OpId> memsets = of_kind(schedule, OpKind::memset);
  ASSERT_EQ(memsets.size(), 1u);
  EXPECT_EQ(written(schedule, memsets[0]), "other 2048");
  EXPECT_TRUE(of_kind(schedule, OpKind::mark).empty());
  EXPECT_TRUE(has_note(schedule, "1 memsets carry the storages of their operator"));
}

// Captures have the sizes that the allocator made of what was asked for.
TEST(MemsetTargets, TheStorageOfItsRoundedSizeIsZeroed) {
  Operator o;
  o.memset(1000);
  o.kernel();
  const Trace schedule = schedule_of(o.finish());
  EXPECT_EQ(written(schedule, of_kind(schedule, OpKind::memset).at(0)), "output 1000");
}

// A kernel behind it that reads and writes `output`, as importers say of an operator's second kernel, tells nothing.
TEST(MemsetTargets, APartThatIsOnlyChangedIsNotIts) {
  Operator o;
  o.memset(256);
  o.launch(OpKind::kernel, 4096, {o.read(o.output), Operator::write(o.output), Operator::write(o.other)});
  const Trace schedule = schedule_of(o.finish());
  EXPECT_EQ(written(schedule, of_kind(schedule, OpKind::memset).at(0)), "target of copies and memsets 256");
  EXPECT_EQ(written(schedule, of_kind(schedule, OpKind::mark).at(0)), "output 0") << "its content is not known";
}

// A workspace: no storage has that size, and the kernel writes over whatever is there.
TEST(MemsetTargets, AnotherSizeIsMemoryThatTheTraceDoesNotName) {
  Operator o;
  o.memset(256);
  o.kernel();
  o.reader(o.output);
  const Trace schedule = schedule_of(o.finish());
  EXPECT_EQ(written(schedule, of_kind(schedule, OpKind::memset).at(0)), "target of copies and memsets 256");
}

// Larger than all of them: it cannot be one of them.
TEST(MemsetTargets, TooManyBytesAreMemoryThatTheTraceDoesNotName) {
  Operator o;
  o.memset(1 << 20);
  o.launch(OpKind::memset, 1 << 20, {Operator::write(o.output)});
  o.kernel();
  const Trace schedule = schedule_of(o.finish());
  for (const OpId id : of_kind(schedule, OpKind::memset))
    EXPECT_EQ(written(schedule, id), "target of copies and memsets 1048576");
}

// Nothing else writes `output` before it is read: the memset makes a part of it. What `other` holds, nobody knows.
TEST(MemsetTargets, APartIsZeroedWhereLaterOpsReadIt) {
  Operator o;
  o.memset(256);
  o.reader(o.output);
  o.reader(o.other);
  const Trace schedule = schedule_of(o.finish());
  EXPECT_EQ(written(schedule, of_kind(schedule, OpKind::memset).at(0)), "output 256");
  const std::vector<OpId> marks = of_kind(schedule, OpKind::mark);
  ASSERT_EQ(marks.size(), 1u);
  EXPECT_EQ(written(schedule, marks[0]), "other 0");
  ScriptedBackend backend;
  const Execution e = execute(schedule, backend, {});
  EXPECT_EQ(e.integrity.mismatches, 0u);
  EXPECT_EQ(e.integrity.bytes, 256u) << "of `output` what was zeroed, of `other` nothing";
}

// An operator that works in place: its kernels read what was there before, which a memset of its counters leaves.
TEST(MemsetTargets, WhatIsChangedInPlaceKeepsItsContent) {
  Operator o;
  const auto uses = [&] { return std::vector<Use>{o.read(o.input), o.write(o.input), o.write(o.output)}; };
  o.launch(OpKind::memset, 256, uses());
  o.launch(OpKind::kernel, 4096, uses());
  const Trace schedule = schedule_of(o.finish());
  EXPECT_EQ(written(schedule, of_kind(schedule, OpKind::memset).at(0)), "target of copies and memsets 256");
  const OpId kernel = of_kind(schedule, OpKind::kernel).at(0);
  EXPECT_EQ(schedule.uses_of(schedule.ops[kernel])[0].version, 0u);
  EXPECT_TRUE(of_kind(schedule, OpKind::mark).empty());
}

// A view of one storage, zeroed in place, says that it reads it.
TEST(MemsetTargets, AMemsetOfOneStorageIsOfThatStorage) {
  Operator o;
  o.launch(OpKind::memset, 512, {o.read(o.input), o.write(o.input)});
  o.launch(OpKind::memset, 0, {Operator::write(o.output)});
  const Trace schedule = schedule_of(o.finish());
  EXPECT_EQ(written(schedule, 2), "input 512");
  EXPECT_EQ(written(schedule, 3), "output 1024") << "all of it, where no size is known";
}

TEST(MemsetTargets, MemsetsInARowZeroOneStorageEach) {
  for (const bool between : {false, true}) {
    Operator o;
    const StorageId twin = o.b.add_storage(1024, StorageKind::gradient, "hbm", "twin");
    o.b.alloc(twin, 0);
    const std::vector<Use> both{Operator::write(o.output), Operator::write(twin)};
    o.launch(OpKind::memset, 1024, both);
    if (between) o.kernel();
    o.launch(OpKind::memset, 1024, both);
    o.reader(o.output);
    o.reader(twin);
    const Trace schedule = schedule_of(o.finish());
    const std::vector<OpId> memsets = of_kind(schedule, OpKind::memset);
    EXPECT_EQ(written(schedule, memsets.at(0)), "output 1024");
    EXPECT_EQ(written(schedule, memsets.at(1)), between ? "output 1024" : "twin 1024");
  }
}

TEST(MemsetTargets, SizesAreComparedBeforeTheyAreScaled) {
  Operator o;
  o.memset(1024);
  o.kernel();
  const Trace schedule = schedule_of(o.finish(), {1.0 / 3, 1});
  EXPECT_EQ(written(schedule, of_kind(schedule, OpKind::memset).at(0)), "output 341");
}

// A real training step: its memsets carry the storages of convolutions, sums and products.
TEST(MemsetTargets, TheCapturedStepOfVgg13BecomesASchedule) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "MEMWALL_SHARED names no folder with captures";
  const ScratchFolder folder;
  const std::string step = "'" + (*data / "traces/kineto/vgg13_h100_bs512_train.json").string() + "' --et '" +
                           (*data / "traces/execution_trace/vgg13_h100_bs512.json").string() + "' ";
  const CommandOutcome whole = run_memwall(folder, "schedule " + step + "-o whole.schedule");
  ASSERT_EQ(whole.code, 0) << whole.err;
  const Trace schedule = read_schedule(folder / "whole.schedule");
  EXPECT_TRUE(has_note(schedule, "33 memsets carry the storages of their operator"));
  int named = 0, unnamed = 0;
  for (const OpId id : of_kind(schedule, OpKind::memset)) {
    const Storage& target = schedule.storages[schedule.uses_of(schedule.ops[id])[0].storage];
    const bool is_named = schedule.strings[target.label] != "target of copies and memsets";
    ++(is_named ? named : unnamed);
    if (is_named) {
      EXPECT_EQ(target.bytes, (schedule.ops[id].bytes + 511) / 512 * 512) << "op " << id;
    }
  }
  EXPECT_EQ(named + unnamed, 33);
  EXPECT_EQ(unnamed, 16) << "ints of 4 bytes of cuDNN, and what is as large as no tensor of its operator";

  const CommandOutcome planned = run_memwall(folder, "run " + step + "--policy checkpoint:mode=full --plan-out x.plan");
  ASSERT_EQ(planned.code, 0) << planned.err;
  const CommandOutcome small =
      run_memwall(folder, "schedule " + step + "--plan x.plan --scale bytes=1/1024 -o small.schedule");
  ASSERT_EQ(small.code, 0) << small.err;
  const Execution e = execute_numbered(folder / "small.schedule");
  EXPECT_EQ(e.integrity.mismatches, 0u);
  EXPECT_GT(e.integrity.checks, 500u);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
