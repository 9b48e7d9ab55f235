// A step whose host is faster can be longer: why, on the smallest capture that shows it.
//
// On recorded steps a host of three quarters of the time gains more than one of half (docs/limits.md). The cause is the
// order on a copy engine: it serves copies as they become ready, and a host that is ahead issues the next batch's large
// copy before the GPU has come to the small one that the step waits for.
#include <gtest/gtest.h>

#include <string>

#include "models/workload/import/kineto/kineto_reader.h"
#include "models/workload/import/timed/timed_import.h"
#include "sim/engine/simulation.h"
#include "sim/trace/scale.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// A kernel of 1,000 us and behind it, on its stream, a copy of 4 bytes; 1,200 us of host work later a prefetch of
// 9,000 us on another stream, the other way where `opposite`; then the host waits for the small copy.
Trace step(bool opposite) {
  std::string events;
  int number = 0;
  const auto add = [&](const std::string& category, const std::string& name, int thread, int at, int duration,
                       const std::string& more) {
    events += (events.empty() ? "" : ",\n") + (R"({"ph":"X","cat":")" + category) + R"(","name":")" + name +
              R"(","pid":1,"tid":)" + std::to_string(thread) + ",\"ts\":" + std::to_string(1'000'000 + at) +
              ",\"dur\":" + std::to_string(duration) + R"(,"args":{"correlation":)" + std::to_string(number) + more +
              "}}";
  };
  const auto launch = [&](const char* call, int at, const char* category, const char* name, int stream, int start,
                          int duration, const char* more) {
    ++number;
    add("cuda_runtime", call, 100, at, 5, "");
    add(category, name, stream, start, duration, R"(,"device":0,"stream":)" + std::to_string(stream) + more);
  };
  launch("cudaLaunchKernel", 0, "kernel", "k", 7, 10, 1000, "");
  launch("cudaMemcpyAsync", 10, "gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 7, 1012, 1, ",\"bytes\":4");
  launch("cudaMemcpyAsync", 1215, "gpu_memcpy",
         opposite ? "Memcpy DtoH (Device -> Pinned)" : "Memcpy HtoD (Pinned -> Device)", 20, 1225, 9000,
         ",\"bytes\":90000000");
  ++number;
  add("cuda_runtime", "cudaStreamSynchronize", 100, 1225, 5, "");
  add("cuda_sync", "Stream Sync", 7, 1225, 5, ",\"stream\":7");
  const ScratchFolder folder;
  write_content(folder / "capture.json", "{\"schemaVersion\":1,\"traceEvents\":[" + events + "]}");
  return import_timed_capture(read_kineto(folder / "capture.json")).trace;
}

// When the host has what it waits for.
Duration waited(const Trace& trace, double host) {
  SimulationOptions options;
  options.allocator = "ideal";
  const Trace faster = scaled(trace, {.host = host});
  const SimulationResult result = simulate(faster, test_machine(), options);
  for (OpId id = 0; id < faster.ops.size(); ++id)
    if (faster.ops[id].kind == OpKind::synchronize) return result.records[id].host_end - Time{};
  ADD_FAILURE() << "nobody waits";
  return {};
}

TEST(FasterHost, MayPutAPrefetchBeforeTheCopyThatTheStepWaitsFor) {
  const Trace trace = step(false);
  const Duration own = waited(trace, 1), faster = waited(trace, 0.9), much_faster = waited(trace, 0.5);
  EXPECT_NEAR(to_microseconds(own), 1230, 10);
  EXPECT_LT(faster, own);
  // The prefetch is ready at about 610 us, the small copy at 1,010: it comes behind all of it.
  EXPECT_NEAR(to_microseconds(much_faster), 610 + 9000, 40);
}

// The engine is the cause: a prefetch on the other engine leaves each faster host with a shorter step.
TEST(FasterHost, IsNeverSlowerWhereThePrefetchHasAnEngineOfItsOwn) {
  const Trace trace = step(true);
  Duration before = waited(trace, 1);
  for (const double host : {0.9, 0.75, 0.5, 0.25}) {
    EXPECT_LE(waited(trace, host), before) << host;
    before = waited(trace, host);
  }
  EXPECT_NEAR(to_microseconds(before), 1015, 10) << "the kernel is left";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
