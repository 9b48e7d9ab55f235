// Is content that a plan brought back wrongly found by who reads it?
#include "validate/replay/step_contents.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/error.h"
#include "sim/trace/trace_builder.h"
#include "sim/trace/trace_check.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/scripted_backend.h"
#include "tests/support/step_program.h"
#include "validate/replay/execution.h"
#include "validate/replay/host_backend.h"
#include "validate/replay/schedule.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const char* const kPlans[] = {"offload:what=activations,to=host,min_bytes=0",
                              "offload:what=activations,to=host,pinned=0,min_bytes=0",
                              "offload:what=activations,to=nvme,min_bytes=0", "checkpoint:mode=full"};

struct Planned {
  Trace schedule, before;
  StepContents contents;
};

Planned planned(const Trace& step, const std::string& policy) {
  Planned p{schedule_of(rewritten(step, policy)), schedule_of(step), {}};
  p.contents = step_contents(p.schedule, p.before, step.storages.size()).value_or(StepContents{});
  return p;
}

// The sentence with which executing ends, "" if it succeeds.
std::string failure(const Trace& schedule, Backend& backend, const StepContents& contents) {
  ExecutionSettings settings;
  settings.passes = 1;
  settings.contents = contents;
  try {
    execute(schedule, backend, settings);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(StepContents, NameWhatEveryOpReadsAndMakes) {
  for (const std::string policy : kPlans) {
    for (const int steps : {1, 2}) {
      GptShape shape;
      shape.steps = steps;
      const Planned p = planned(gpt_step(shape), policy);
      ASSERT_FALSE(p.contents.empty()) << policy;
      int reruns = 0;
      for (const Op& op : p.schedule.ops) {
        if (op.kind != OpKind::kernel) continue;
        for (std::uint32_t i = 0; i < op.use_count; ++i) {
          EXPECT_NE(p.contents.of(op.first_use + i), 0u) << policy;
          if (op.source == kNoOp) continue;
          ++reruns;
          EXPECT_EQ(p.contents.of(op.first_use + i), p.contents.of(p.schedule.ops[op.source].first_use + i));
        }
      }
      EXPECT_EQ(reruns > 0, policy.starts_with("checkpoint"));
      ScriptedBackend backend;
      EXPECT_EQ(failure(p.schedule, backend, p.contents), "") << policy;
    }
  }
}

// Copies back that read another storage of equal size at the far end, which has its own content by then. The schedule
// is as sound as before, and without numbers the executor finds nothing wrong in some of them.
TEST(StepContents, AFetchOfTheWrongContentIsFound) {
  const Planned p = planned(gpt_step({}), kPlans[0]);
  const auto use_of = [&](OpId id, std::uint32_t i) -> const Use& {
    return p.schedule.uses[p.schedule.ops[id].first_use + i];
  };
  const auto comes_back = [&](OpId id) {
    const Op& op = p.schedule.ops[id];
    return op.kind == OpKind::copy && p.schedule.places[op.from] == "host" && p.schedule.places[op.to] == "hbm";
  };
  int unnoticed = 0, found = 0;
  for (OpId id = 0; id < p.schedule.ops.size() && unnoticed < 3; ++id) {
    if (!comes_back(id)) continue;
    for (OpId later = id + 1; later < p.schedule.ops.size() && unnoticed < 3; ++later) {
      if (!comes_back(later) || p.schedule.ops[later].bytes != p.schedule.ops[id].bytes) continue;
      Trace damaged = p.schedule;
      damaged.uses[damaged.ops[id].first_use] = use_of(later, 0);
      if (!check(damaged).empty()) continue;
      ScriptedBackend blind, seeing;
      if (!failure(damaged, blind, {}).empty()) continue;  // it came too early even for that
      ++unnoticed;
      const std::string sentence = failure(damaged, seeing, p.contents);
      EXPECT_NE(sentence.find("came to wrong contents"), std::string::npos) << "copy " << id << " of " << later;
      EXPECT_NE(sentence.find("op "), std::string::npos) << sentence;
      found += sentence.empty() ? 0 : 1;
    }
  }
  EXPECT_EQ(unnoticed, 3);
  EXPECT_EQ(found, 3);
}

// One kernel makes `x`, a second changes it in place, a third reads it; a copy goes to the host and comes back.
struct RoundTrip {
  TraceBuilder b;
  StorageId x = kNoStorage, back = kNoStorage, far = kNoStorage;

  RoundTrip() {
    b.trace().name = "round trip";
    b.add_thread("main");
    b.add_stream("compute", StreamRole::compute);
    b.trace().knowledge.allocations = b.trace().knowledge.dataflow = true;
    x = b.add_storage(4096, StorageKind::activation, "hbm", "x", true);
  }
  void kernel(const char* name, std::vector<Use> uses) {
    Op op;
    op.kind = OpKind::kernel;
    op.bytes = 4096;
    op.name = b.trace().strings.intern(name);
    b.append(op, uses);
  }
  void make() { kernel("make", {{x, 0, Access::write}}); }
  void change() { kernel("change", {{x, TraceBuilder::kLatest, Access::read}, {x, 0, Access::write}}); }
  void read(StorageId storage) { kernel("read", {{storage, TraceBuilder::kLatest, Access::read}}); }
  void copy(StorageId from, StorageId to) {
    Op op;
    op.kind = OpKind::copy;
    op.bytes = 4096;
    op.from = b.trace().storages[from].place;
    op.to = b.trace().storages[to].place;
    b.append(op, std::vector<Use>{{from, TraceBuilder::kLatest, Access::read}, {to, 0, Access::write}});
  }
  void place_far() {
    far = b.add_storage(4096, StorageKind::activation, "host", "far", true);
    back = b.add_storage(4096, StorageKind::activation, "hbm", "x", true);
    b.trace().storages[far].pinned = true;
  }
  Trace schedule() { return schedule_of(std::move(b).finish()); }
};

Trace unplanned() {
  RoundTrip t;
  t.make();
  t.change();
  t.read(t.x);
  return t.schedule();
}

// `early`: the copy leaves before the content is the newest.
Trace moved(bool early) {
  RoundTrip t;
  t.place_far();
  t.make();
  if (early) t.copy(t.x, t.far);
  t.change();
  if (!early) t.copy(t.x, t.far);
  t.copy(t.far, t.back);
  t.read(t.back);
  return t.schedule();
}

TEST(StepContents, ACopyOfAnOlderVersionIsFound) {
  const Trace before = unplanned();
  for (const bool early : {false, true}) {
    const Trace schedule = moved(early);
    const auto contents = step_contents(schedule, before, 1);
    ASSERT_TRUE(contents);
    ScriptedBackend blind, seeing;
    EXPECT_EQ(failure(schedule, blind, {}), "");
    const std::string sentence = failure(schedule, seeing, *contents);
    EXPECT_EQ(sentence.find("came to wrong contents") != std::string::npos, early) << sentence;
  }
}

// What nobody brought is no content at all.
TEST(StepContents, AMissingCopyIsFound) {
  RoundTrip t;
  t.place_far();
  t.make();
  t.change();
  t.read(t.back);
  const Trace schedule = t.schedule();
  const auto contents = step_contents(schedule, unplanned(), 1);
  ASSERT_TRUE(contents);
  ScriptedBackend blind, seeing;
  EXPECT_EQ(failure(schedule, blind, {}), "");
  EXPECT_NE(failure(schedule, seeing, *contents).find("came to wrong contents"), std::string::npos);
}

TEST(StepContents, TheHostBackEndFindsItToo) {
  HostBackendSettings settings;
  settings.device_capacity = MiB(16);
  settings.host_to_device = settings.device_to_host = settings.within_device = 1e8;
  const Trace before = unplanned();
  for (const bool early : {false, true}) {
    const Trace schedule = moved(early);
    const StepContents contents = step_contents(schedule, before, 1).value();
    const auto backend = make_host_backend(settings);
    const std::string sentence = failure(schedule, *backend, contents);
    if (early) {
      EXPECT_NE(sentence.find("came to wrong contents"), std::string::npos) << sentence;
      EXPECT_NE(sentence.find("reads"), std::string::npos) << sentence;
    } else {
      EXPECT_EQ(sentence, "");
    }
  }
}

// Behind ZeRO 3 a re-run reads what backward has gathered, its original what forward has: the same shards.
TEST(StepContents, GathersOfTheSameShardsAreTheSame) {
  GptShape shape;
  shape.layers = 3;
  const Trace step = rewritten(gpt_step(shape), "zero:stage=3,ranks=8");
  const Planned p = planned(step, "checkpoint:mode=full");
  ASSERT_FALSE(p.contents.empty());
  ScriptedBackend backend;
  EXPECT_EQ(failure(p.schedule, backend, p.contents), "");
}

// Running statistics are updated a second time: whoever reads them later finds what the step never had.
TEST(StepContents, WhatARerunChangesASecondTimeHasNoNumber) {
  StepProgram p;
  const StorageId x = p.preexisting(1000, StorageKind::input, "x"),
                  mean = p.preexisting(100, StorageKind::parameter, "m");
  std::vector<StorageId> results{x};
  for (int layer = 0; layer < 3; ++layer) {
    p.module("layers." + std::to_string(layer));
    results.push_back(p.make(1000, "result"));
    p.op("batch_norm", {results[results.size() - 2], mean}, {results.back(), mean});
  }
  p.backward();
  for (int layer = 3; layer > 0; --layer) {
    p.module("layers." + std::to_string(layer - 1));
    p.op("batch_norm_backward", {results[static_cast<std::size_t>(layer)]}, {});
    p.drop(results[static_cast<std::size_t>(layer)]);
  }
  p.optimizer();
  p.op("reads_statistics", {mean}, {});
  Trace step = std::move(p).finish();
  for (Op& op : step.ops)
    if (op.kind == OpKind::kernel) op.bytes = 64;
  const Planned planned_step = planned(step, "checkpoint:mode=full");
  ASSERT_FALSE(planned_step.contents.empty());
  const auto is_rerun = [](const Op& op) { return op.phase == Phase::recompute && op.kind == OpKind::kernel; };
  ASSERT_TRUE(std::any_of(planned_step.schedule.ops.begin(), planned_step.schedule.ops.end(), is_rerun));
  ScriptedBackend backend;
  EXPECT_EQ(failure(planned_step.schedule, backend, planned_step.contents), "");
}

TEST(StepContents, OtherComputationsHaveNone) {
  const Trace before = unplanned();
  RoundTrip more, less, other;
  more.make();
  more.change();
  more.change();
  more.read(more.x);
  less.make();
  less.read(less.x);
  other.make();
  other.kernel("changes", {{other.x, TraceBuilder::kLatest, Access::read}, {other.x, 0, Access::write}});
  other.read(other.x);
  for (RoundTrip* step : {&more, &less, &other}) EXPECT_FALSE(step_contents(step->schedule(), before, 1));
  const Trace trace = gpt_step({});
  const Trace sharded = schedule_of(rewritten(trace, "zero:stage=1,ranks=8"));
  EXPECT_FALSE(step_contents(sharded, schedule_of(trace), trace.storages.size()));
}

TEST(StepContents, AreWrittenIntoTheScheduleAndReadAgain) {
  for (const std::string policy : kPlans) {
    const Planned p = planned(gpt_step({}), policy);
    const std::string text = schedule_text(p.schedule, p.contents);
    EXPECT_TRUE(text.starts_with("memwall schedule 2\n"));
    StepContents read;
    const Trace schedule = parse_schedule(text, "x.schedule", &read);
    EXPECT_EQ(read.uses, p.contents.uses) << policy;
    EXPECT_EQ(read.initial, p.contents.initial) << policy;
    EXPECT_EQ(schedule_text(schedule, read), text);
    EXPECT_EQ(schedule_text(schedule), schedule_text(p.schedule)) << "without, it is of the first format";
    ScriptedBackend backend;
    ExecutionSettings settings;
    settings.passes = 1;
    settings.contents = read;
    EXPECT_EQ(execute(schedule, backend, settings).schedule_hash, schedule_hash(text));
  }
}

TEST(StepContents, TheReaderSaysWhatIsNoNumber) {
  const Planned p = planned(gpt_step({}), kPlans[3]);
  const std::string good = schedule_text(p.schedule, p.contents);
  const auto refused = [&](const std::string& from, const std::string& to, const std::string& part) {
    std::string text = good;
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    std::string sentence;
    try {
      parse_schedule(text, "x.schedule");
    } catch (const InputError& error) {
      sentence = error.what();
    }
    EXPECT_NE(sentence.find(part), std::string::npos) << sentence;
  };
  refused("schedule 2", "schedule 1", "found \"memwall schedule 1\", expected \"memwall schedule 2\"");
  refused("content=1", "content=x", "a whole number from 0 to 4294967295");
  refused("content=1", "content=0", "expected \"storage");
  refused("r0:0=1", "r0:0=", "a whole number");
  refused("r0:0=1", "r0:0=01", "expected \"kernel");
  refused("r0:0=1", "r0:0=4294967296", "a whole number");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
