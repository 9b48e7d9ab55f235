// Steps that write to the drives of the test machine (2 GB/s), for tests of write caches: storage operations on streams
// of their own, each begun when it is told to.
#pragma once

#include <string>

#include "sim/engine/simulation.h"
#include "sim/trace/trace_builder.h"
#include "tests/support/test_machine.h"

namespace memwall {

inline constexpr Bytes kGigabyte = 1'000'000'000;

// The test machine with a write cache behind its drives.
inline Machine machine_with_write_cache(Bytes cache, double sustained) {
  Machine machine = test_machine();
  const auto link = static_cast<std::size_t>(machine.link("nvme_write"));
  machine.tiers[static_cast<std::size_t>(machine.tier("nvme"))].write_link = static_cast<std::int32_t>(link);
  machine.links[link].write_cache = cache;
  machine.links[link].sustained = sustained;
  return machine;
}

class WriteTrace {
 public:
  WriteTrace() {
    b_.trace().name = "writes";
    b_.trace().knowledge = {true, true, true, false, false};
    b_.trace().constants = {};
    b_.trace().constants.event_latency = Duration{};
    b_.add_thread("main");
    b_.add_stream("compute", StreamRole::compute);
  }

  // At `begin` seconds, not before that of the one before; takes bytes / rate alone. On the stream of that name.
  OpId write(double begin, Bytes bytes, double rate = 2e9, const std::string& stream = "") {
    return transfer(begin, bytes, rate, "host", "nvme", stream);
  }
  OpId read(double begin, Bytes bytes, double rate = 4e9) { return transfer(begin, bytes, rate, "nvme", "host", ""); }
  OpId kernel(double begin, double seconds) {
    Op op;
    op.kind = OpKind::kernel;
    op.duration = from_seconds(seconds);
    return append(begin, op);
  }

  void wait_for_all() {
    Op wait;
    wait.kind = OpKind::synchronize;
    wait.wait_for = WaitFor::device;
    b_.append(wait);
  }

  TraceBuilder& builder() { return b_; }
  Trace finish() {
    b_.trace().steps = {{"step", 0, static_cast<OpId>(b_.trace().ops.size())}};
    return b_.trace();
  }

 private:
  OpId transfer(double begin, Bytes bytes, double rate, const char* from, const char* to, const std::string& stream) {
    Op op;
    op.kind = OpKind::storage_io;
    op.stream = stream == "compute" ? 0 : b_.add_stream("storage", StreamRole::storage);
    op.bytes = bytes;
    op.from = b_.trace().place(from);
    op.to = b_.trace().place(to);
    op.duration = from_seconds(static_cast<double>(bytes) / rate);
    op.added = true;
    return append(begin, op);
  }
  OpId append(double begin, Op op) {
    op.host_gap = from_seconds(begin) - begun_;
    begun_ = from_seconds(begin);
    return b_.append(op);
  }

  TraceBuilder b_;
  Time begun_{};
};

}  // namespace memwall
