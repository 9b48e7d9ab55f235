#include "tests/bench/step_program.h"

#include <string>

#include "sim/trace/trace_builder.h"

namespace memwall {

Trace bench_program(std::size_t ops) {
  TraceBuilder builder;
  Trace& trace = builder.trace();
  trace.knowledge.timing = trace.knowledge.allocations = true;
  trace.constants.launch_latency[0] = microseconds(2);
  trace.constants.stream_gap[0][0] = microseconds(1);
  builder.add_thread("main");
  builder.add_stream("compute", StreamRole::compute);
  trace.ops.reserve(ops);
  Op kernel;
  kernel.kind = OpKind::kernel;
  kernel.host_cost = microseconds(5);
  kernel.duration = microseconds(6);
  kernel.bytes = 3'000'000;
  std::uint64_t seed = 1;
  std::vector<StorageId> live;
  for (std::size_t i = 0; i < ops / 4; ++i) {
    seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
    const Bytes bytes = Bytes{512} << (seed >> 60);  // 512 B to 16 MiB
    const StorageId storage = builder.add_storage(bytes, StorageKind::activation, "hbm", "");
    builder.alloc(storage, 0);
    live.push_back(storage);
    builder.append(kernel);
    builder.append(kernel);
    // A stack that empties and fills again, as forward and backward do.
    builder.free(live.back(), 0);
    live.pop_back();
  }
  return std::move(builder).finish();
}

Trace contended_program(std::size_t ops) {
  constexpr std::uint16_t kStreams = 8;
  TraceBuilder builder;
  Trace& trace = builder.trace();
  trace.knowledge.timing = true;
  builder.add_thread("main");
  for (std::uint16_t s = 0; s < kStreams; ++s) builder.add_stream("storage " + std::to_string(s), StreamRole::storage);
  trace.ops.reserve(ops);
  Op copy;
  copy.kind = OpKind::storage_io;
  copy.added = true;
  copy.host_cost = microseconds(1);
  for (std::size_t i = 0; i < ops; ++i) {
    copy.stream = static_cast<std::uint16_t>(i % kStreams);
    const bool reads = copy.stream % 2 == 0;
    copy.from = trace.place(reads ? "nvme" : "host");
    copy.to = trace.place(reads ? "host" : "nvme");
    copy.bytes = 4'000 + static_cast<Bytes>(i % 7) * 1'000;
    copy.duration = picoseconds(copy.bytes * (reads ? 250 : 500));  // 4 and 2 GB/s, as the links of test_machine()
    builder.append(copy);
  }
  return std::move(builder).finish();
}

}  // namespace memwall
