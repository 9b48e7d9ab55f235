// Schedules: no time is left in them, what cannot be executed is refused, and what is written is read again.
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/error.h"
#include "sim/trace/scale.h"
#include "sim/trace/trace_builder.h"
#include "sim/trace/trace_check.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/small_schedule.h"
#include "validate/replay/schedule.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

GptShape timed_shape() {
  GptShape shape;
  shape.steps = 2;
  shape.host_gap = microseconds(3);
  shape.launch_cost = microseconds(5);
  shape.allocator_cost = microseconds(1);
  return shape;
}

const char* const kPolicies[] = {"checkpoint:mode=full", "offload:what=activations,to=host,min_bytes=0",
                                 "offload:what=activations,to=nvme,min_bytes=0", "offload:what=optimizer,to=host",
                                 "offload:what=optimizer,to=nvme"};

TEST(Schedule, HoldsNoTime) {
  for (const char* policy : kPolicies) {
    const Trace trace = rewritten(gpt_step(timed_shape()), policy);
    ASSERT_FALSE(is_timeless(trace));
    const Trace schedule = schedule_of(trace);
    EXPECT_TRUE(is_timeless(schedule)) << policy;
    EXPECT_EQ(not_executable(schedule), "") << policy;
    EXPECT_TRUE(check(schedule).empty()) << policy;
    // Whatever was predicted, the schedule is the same.
    EXPECT_EQ(schedule_text(schedule_of(scaled(trace, {3, 0.5, 7}))), schedule_text(schedule)) << policy;
  }
}

TEST(Schedule, KeepsWhatIsDone) {
  const Trace trace = gpt_step(timed_shape()), schedule = schedule_of(trace);
  ASSERT_EQ(schedule.ops.size(), trace.ops.size());
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    EXPECT_EQ(schedule.ops[id].kind, trace.ops[id].kind);
    EXPECT_EQ(schedule.ops[id].bytes, trace.ops[id].bytes);
    EXPECT_EQ(schedule.ops[id].flops, trace.ops[id].flops);
    EXPECT_EQ(schedule.ops[id].target, trace.ops[id].target);
    EXPECT_EQ(schedule.ops[id].use_count, trace.ops[id].use_count);
  }
  EXPECT_EQ(producer_hashes(schedule), producer_hashes(trace));
  EXPECT_EQ(schedule.steps.size(), 2u);
}

TEST(Schedule, ScalesSizes) {
  const Trace trace = rewritten(gpt_step({}), "offload:what=activations,to=host,min_bytes=0");
  const Trace schedule = schedule_of(trace, {0.001, 100});
  ASSERT_EQ(schedule.ops.size(), trace.ops.size());
  for (StorageId id = 0; id < trace.storages.size(); ++id) {
    const Bytes expected = std::max<Bytes>(1, std::llround(static_cast<double>(trace.storages[id].bytes) * 0.001));
    EXPECT_EQ(schedule.storages[id].bytes, expected);
  }
  for (OpId id = 0; id < trace.ops.size(); ++id) EXPECT_DOUBLE_EQ(schedule.ops[id].flops, trace.ops[id].flops * 100);
  EXPECT_THROW(schedule_of(trace, {0, 1}), UsageError);
  EXPECT_THROW(schedule_of(trace, {1e18, 1}), UsageError);
  EXPECT_THROW(schedule_of(trace, {1, -1}), UsageError);
}

TEST(Schedule, TextIsReadAgain) {
  for (const char* policy : kPolicies) {
    const Trace schedule = schedule_of(rewritten(gpt_step(timed_shape()), policy));
    const std::string text = schedule_text(schedule);
    const Trace read = parse_schedule(text, "x.schedule");
    EXPECT_EQ(schedule_text(read), text) << policy;
    EXPECT_EQ(read.ops.size(), schedule.ops.size());
    EXPECT_EQ(producer_hashes(read), producer_hashes(schedule)) << policy;
    EXPECT_TRUE(is_timeless(read));
    EXPECT_TRUE(read.knowledge.dataflow && read.knowledge.allocations && !read.knowledge.timing);
  }
}

TEST(Schedule, WordsOfAnyKindSurvive) {
  SmallSchedule s;
  Trace& t = s.b.trace();
  t.name = "tab\there";
  t.notes = {"-", "", "100% of\nlines", std::string("\0\x7f\xff", 3)};
  t.threads[0].name = "";
  Op op = s.op(OpKind::kernel, 8);
  op.name = t.strings.intern("void k<float, -1>(a\tb)");
  s.b.append(op);
  const Trace schedule = schedule_of(std::move(s.b).finish());
  const Trace read = parse_schedule(schedule_text(schedule), "x");
  EXPECT_EQ(read.name, "tab\there");
  EXPECT_EQ(read.notes, schedule.notes);
  EXPECT_EQ(read.notes[3], std::string("\0\x7f\xff", 3));
  EXPECT_EQ(read.threads[0].name, "");
  EXPECT_EQ(read.strings[read.ops[0].name], "void k<float, -1>(a\tb)");
}

TEST(Schedule, GraphsAreUnrolled) {
  SmallSchedule s;
  s.b.append(s.op(OpKind::graph_launch));
  for (int i = 0; i < 3; ++i) {
    Op node = s.op(OpKind::kernel, 64);
    node.graph_member = true;
    node.thread = 9;  // nodes have none
    s.b.append(node);
  }
  const Trace schedule = schedule_of(std::move(s.b).finish());
  ASSERT_EQ(schedule.ops.size(), 4u);
  EXPECT_EQ(schedule.ops[0].kind, OpKind::mark);
  for (OpId id = 1; id < 4; ++id) {
    EXPECT_EQ(schedule.ops[id].kind, OpKind::kernel);
    EXPECT_FALSE(schedule.ops[id].graph_member);
    EXPECT_EQ(schedule.ops[id].thread, 0);
  }
  EXPECT_TRUE(has_note(schedule, "3 nodes of CUDA graphs"));
}

TEST(Schedule, WhatACaptureDoesNotNameGetsAStorage) {
  SmallSchedule s;
  Op copy = s.op(OpKind::copy, 1000);
  copy.from = s.b.trace().place("host");
  copy.pageable = true;
  copy.wait_for = WaitFor::own_op;
  s.b.append(copy);
  s.b.append(s.op(OpKind::memset, 2000));
  s.b.append(s.op(OpKind::kernel), std::vector<Use>{{s.device, TraceBuilder::kLatest, Access::read}});
  s.b.append(s.op(OpKind::host_work));
  s.b.trace().untracked_bytes = 12345;
  const Trace schedule = schedule_of(std::move(s.b).finish());
  const auto uses = schedule.uses_of(schedule.ops[0]);
  ASSERT_EQ(uses.size(), 2u);
  EXPECT_EQ(schedule.storages[uses[0].storage].bytes, 1000);
  EXPECT_FALSE(schedule.storages[uses[0].storage].pinned);
  EXPECT_EQ(schedule.storages[uses[1].storage].bytes, 2000);  // shared with the memset
  EXPECT_EQ(schedule.ops[2].bytes, 4096);
  EXPECT_EQ(schedule.ops[3].kind, OpKind::mark);
  EXPECT_EQ(schedule.untracked_bytes, 0);
  EXPECT_TRUE(std::any_of(schedule.storages.begin(), schedule.storages.end(),
                          [](const Storage& storage) { return storage.bytes == 12345 && storage.preexisting; }));
  EXPECT_TRUE(has_note(schedule, "1 pieces of host work")) << schedule.notes.back();
}

// ZeRO-Infinity's optimizer swaps the states of a sub-group at once.
TEST(Schedule, ATransferOfSeveralStoragesIsOneForEach) {
  const Trace trace = rewritten(gpt_step({}), "offload:what=optimizer,to=nvme");
  const Trace schedule = schedule_of(trace);
  EXPECT_GT(schedule.ops.size(), trace.ops.size());
  const auto moved = [](const Trace& t, const char* to) {
    Bytes sum = 0;
    for (const Op& op : t.ops)
      if (op.kind == OpKind::storage_io && t.places[op.to] == to) sum += op.bytes;
    return sum;
  };
  EXPECT_GT(moved(trace, "nvme"), 0);
  EXPECT_EQ(moved(schedule, "nvme"), moved(trace, "nvme"));
  EXPECT_EQ(moved(schedule, "host"), moved(trace, "host"));
  for (const Op& op : schedule.ops) {
    if (op.kind == OpKind::hand_over) {
      EXPECT_NE(schedule.ops[op.target].thread, op.thread);
    }
  }
  ASSERT_EQ(schedule.steps.size(), 1u);
  EXPECT_EQ(schedule.steps[0].last, schedule.ops.size());
}

TEST(Schedule, RefusesWhatCannotBeExecuted) {
  {
    SmallSchedule s;
    s.b.append(s.op(OpKind::kernel));
    EXPECT_NE(schedule_refusal(s.b.trace()).find("Op 0 (kernel 'it') has neither FLOPs nor bytes"), std::string::npos);
  }
  {
    SmallSchedule s;
    Op op = s.op(OpKind::collective, 64);
    op.duration = Duration{};
    s.b.append(op);
    s.b.trace().ranks = 8;
    EXPECT_NE(schedule_refusal(s.b.trace()).find("of 8 ranks of which the trace does not know how long it takes"),
              std::string::npos);
  }
  {
    SmallSchedule s;
    s.copy(s.device, s.b.add_storage(4096, StorageKind::activation, "peer_hbm", "far", true));
    EXPECT_NE(schedule_refusal(s.b.trace()).find("'peer_hbm'; expected hbm, host or nvme"), std::string::npos);
  }
  {
    SmallSchedule s;
    s.copy(s.device, s.b.add_storage(4096, StorageKind::activation, "nvme", "far", true), 4096, OpKind::storage_io);
    EXPECT_NE(schedule_refusal(s.b.trace()).find("not implemented; expected host and nvme"), std::string::npos);
  }
  {
    SmallSchedule s;
    s.copy(s.device, s.host, 4097);
    EXPECT_NE(schedule_refusal(s.b.trace()).find("moves 4097 bytes; expected 1 to 4096"), std::string::npos);
  }
  {
    SmallSchedule s;
    s.b.append(s.op(OpKind::kernel, 8), std::vector<Use>{{s.host, TraceBuilder::kLatest, Access::read}});
    EXPECT_NE(schedule_refusal(s.b.trace()).find("not in device memory"), std::string::npos);
  }
  {
    SmallSchedule s;
    s.b.append(s.op(OpKind::kernel, 8));
    Op other = s.op(OpKind::kernel, 8);
    other.stream = s.b.add_stream("second GPU", StreamRole::compute, 1);
    s.b.append(other);
    EXPECT_NE(schedule_refusal(s.b.trace()).find("expected one GPU"), std::string::npos);
  }
}

TEST(Schedule, ReaderSaysLineFoundAndExpected) {
  const std::string good = schedule_text(schedule_of(rewritten(gpt_step({}), kPolicies[1])));
  ASSERT_EQ(parse_refusal(good), "");
  const auto said = [&](const std::string& text, const std::string& part) {
    const std::string sentence = parse_refusal(text);
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
    EXPECT_EQ(sentence.find("x.schedule"), 0u) << sentence;
  };
  said("", "memwall schedule 1");
  said(changed(good, "schedule 1", "schedule 3"), "x.schedule:1: found \"memwall schedule 3\"");
  said(changed(good, "schedule 1", "schedule 2"), "x.schedule:1: found \"memwall schedule 2\"");
  said(good.substr(0, good.size() - 1), "cut off");
  said(good.substr(0, good.rfind("end\t")), "found \"the end of the file\"");
  said(good + "note\tmore\n", "nothing after");
  said(changed(good, "\nevents\t", "\nevents\t0"), "found \"events?0");
  said(changed(good, "\tforward\t", "\tforwards\t"), "found \"forwards\", expected a phase");
  said(changed(good, "\nkernel\t0", "\nkernel\t1x"), "a whole number from 0 to 65535");
  said(changed(good, "\nkernel\t", "\nkernal\t"), "expected the first word of a line");
  said(changed(good, "\tpreexisting\t", "\tpreexisting,new\t"), "expected \"storage");
  said(changed(good, "r0:0", "r0:0,"), "a use such as r3:1");
  said(changed(good, "r0:0", "r0:7"), "reads version 7");
  said(changed(good, "\tr0:0", "\tr4000000000:0"), "uses a storage that is not listed");
  said(changed(good, "\nplace\thbm\n", "\nplace\thbm2\n"), "'hbm2'");
  said(changed(good, "step 0", "step%2"), "two hexadecimal digits");
  said(changed(good, "step 0", "step%200"), "found \"step");  // a space needs no code
}

TEST(Schedule, NoNameCommandsATerminal) {
  Trace trace = gpt_step({});
  trace.name =
      "gr\xc3\xb6\xc3\x9f"
      "e";
  EXPECT_NE(schedule_text(schedule_of(trace)).find(trace.name), std::string::npos) << "text stays readable";
  trace.name =
      "\xc2\x9b"
      "31m\x1b[2J\xff";
  const std::string text = schedule_text(schedule_of(trace));
  for (const char* command : {"\xc2\x9b", "\x1b", "\xff"}) EXPECT_EQ(text.find(command), std::string::npos);
  EXPECT_EQ(parse_schedule(text, "x.schedule").name, trace.name);
}

TEST(Schedule, FilesAreWrittenWhole) {
  const ScratchFolder folder;
  const Trace schedule = schedule_of(gpt_step({}));
  write_schedule(schedule, folder / "a.schedule");
  EXPECT_EQ(content_of(folder / "a.schedule"), schedule_text(schedule));
  EXPECT_EQ(schedule_text(read_schedule(folder / "a.schedule")), schedule_text(schedule));
  EXPECT_THROW(read_schedule(folder / "b.schedule"), InputError);
  EXPECT_THROW(write_schedule(schedule, folder / "no folder/a.schedule"), UsageError);
  EXPECT_THROW(write_schedule(schedule, folder.path()), UsageError);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
