#include "tests/support/varied_runs.h"

#include <utility>

#include "sim/error.h"
#include "sim/trace/trace_builder.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/handmade_run.h"
#include "tests/support/oldest_first_pager.h"
#include "tests/support/random_trace.h"
#include "tests/support/rank_program.h"
#include "tests/support/test_machine.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace {

// Three storages of 50 GB that take turns on 80 GB, some times over.
Run paged_run(PagerClock clock) {
  TraceBuilder b;
  b.add_thread("main");
  b.add_stream("compute", StreamRole::compute);
  Trace& t = b.trace();
  t.constants = {};
  t.place("hbm");
  std::vector<StorageId> storages;
  for (const char* name : {"first", "second", "third"})
    storages.push_back(b.add_storage(50'000'000'000, StorageKind::activation, "hbm", name));
  const auto kernel = [&](Use use) {
    Op op;
    op.kind = OpKind::kernel;
    op.duration = from_seconds(1);
    b.append(op, {&use, 1});
  };
  for (const StorageId s : storages) {
    b.alloc(s, 0);
    kernel({s, 0, Access::write});
  }
  for (int turn = 0; turn < 4; ++turn)
    for (const StorageId s : storages) kernel({s, TraceBuilder::kLatest, Access::read});
  OldestFirstPager pager(clock);
  RunSettings settings;
  settings.pager = &pager;
  settings.pager_text = "lru";
  settings.allocator = "ideal";
  return simulate_and_record(std::move(b).finish(), test_machine(), settings);
}

Run ranks_run() {
  RankAuthor a(3), b(5);
  for (auto [author, time] : {std::pair(&a, microseconds(100)), std::pair(&b, microseconds(400))})
    for (std::uint32_t i = 0; i < 30; ++i) {
      author->kernel(time);
      author->order(0, 1);
      author->meet(i, microseconds(30));
      author->order(1, 0);
      author->kernel(microseconds(10));
      if (i % 10 == 9 && i < 29) author->step();
    }
  a.trace().groups = b.trace().groups = {{"dp", 2, {3, 5}}};
  return simulate_and_record(joined(std::move(a), std::move(b)), test_machine(), {});
}

// Every tier reaches every other, each over its own engine.
Machine connected_machine() {
  Machine machine = test_machine();
  const Route pattern = machine.routes.front();
  machine.routes.clear();
  for (std::uint8_t from = 0; from < machine.tiers.size(); ++from)
    for (std::uint8_t to = 0; to < machine.tiers.size(); ++to)
      for (const bool pageable : {false, true}) {
        Route route = pattern;
        route.from = from;
        route.to = to;
        route.pageable = pageable;
        route.engine = static_cast<std::uint8_t>((from + to + (pageable ? 3 : 0)) % kEngines);
        machine.routes.push_back(route);
      }
  return machine;
}

// What a file must have, and the simulation would have made.
Run completed(Run run) {
  run.memory.resize(run.machine.tiers.size());
  run.link_rates.resize(run.machine.links.size());
  run.at_peak.resize(run.machine.tiers.size());
  run.result.tiers.resize(run.machine.tiers.size());
  run.result.links.resize(run.machine.links.size());
  return run;
}

Run by_hand() {
  HandmadeRun hand;
  hand.device(OpKind::kernel, "zero", 0, 0, 0, 0, 0);
  hand.device(OpKind::graph_launch, "", 0, 0, 1, 1, 1);
  hand.device(OpKind::kernel, "member", 0, 1, 1, 2, 5, WaitReason::launch);
  hand.op(2).graph_member = true;
  hand.device(OpKind::kernel, "placed", 1, 0, 0, 0, 3, WaitReason::event, 0);
  hand.op(3).placed = true;
  hand.host(OpKind::synchronize, "wait", 1, 5);
  hand.waited(4, WaitReason::synchronize, 2);
  hand.host(OpKind::host_work, "", 5, 5);
  return completed(hand.finish());
}

}  // namespace

Run gpt_run(int layers, int steps) {
  GptShape shape;
  shape.layers = layers;
  shape.steps = steps;
  shape.host_gap = nanoseconds(10);
  shape.launch_cost = nanoseconds(20);
  return simulate_and_record(gpt_step(shape), test_machine(), {});
}

std::vector<NamedRun> varied_runs() {
  std::vector<NamedRun> runs;
  runs.push_back({"gpt", gpt_run(2)});
  runs.push_back({"long gpt", gpt_run(700, 1)});
  runs.push_back({"host pager", paged_run(PagerClock::host)});
  runs.push_back({"device pager", paged_run(PagerClock::device)});
  runs.push_back({"ranks", ranks_run()});
  runs.push_back({"by hand", by_hand()});
  runs.push_back({"empty", completed(HandmadeRun().finish())});
  for (std::uint64_t seed = 1; seed <= 4; ++seed)
    runs.push_back({"random " + std::to_string(seed),
                    simulate_and_record(random_trace(seed, 500 * seed), connected_machine(), {})});
  return runs;
}

}  // namespace memwall
