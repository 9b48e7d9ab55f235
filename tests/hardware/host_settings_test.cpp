// Does the host back end refuse what it cannot be, and keep to the cores that it is given?
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "sim/error.h"
#include "sim/trace/trace_builder.h"
#include "validate/replay/host_backend.h"
#include "validate/replay/host_computer.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

HostBackendSettings small_settings() {
  HostBackendSettings settings;
  settings.device_capacity = MiB(32);
  settings.host_to_device = settings.device_to_host = settings.within_device = 2e8;
  settings.scratch = ::testing::TempDir();
  settings.file_bytes = MiB(16);
  return settings;
}

TEST(HostBackendSettings, ThatMakeNoSenseAreRefused) {
  const auto refused = [](auto change) {
    HostBackendSettings settings = small_settings();
    change(settings);
    EXPECT_THROW(make_host_backend(settings), UsageError);
  };
  refused([](auto& s) { s.scratch = "/no/such/folder"; });
  refused([](auto& s) { s.host_to_device = 1e15; });
  refused([](auto& s) { s.device_to_host = 0; });
  refused([](auto& s) { s.within_device = 1e15; });
  refused([](auto& s) { s.file_read = -1; });
  refused([](auto& s) { s.file_write = 1e16; });
  refused([](auto& s) { s.pageable_share = 1.5; });
  refused([](auto& s) { s.device_capacity = Bytes{1} << 46; });
  refused([](auto& s) { s.device_capacity = 0; });
}

TEST(HostBackendSettings, WithoutAFolderThereIsNoFile) {
  HostBackendSettings settings = small_settings();
  settings.scratch.clear();
  const auto backend = make_host_backend(settings);
  EXPECT_THROW(backend->allocate_file(4096), UsageError);
}

TEST(HostBackendSettings, AScheduleThatWouldTakeHoursIsRefused) {
  const auto backend = make_host_backend(small_settings());
  TraceBuilder builder;
  builder.add_stream("compute", StreamRole::compute);
  builder.trace().ops.resize(2);
  for (Op& op : builder.trace().ops) op.flops = 2e13;
  Trace schedule = std::move(builder).finish();
  EXPECT_NO_THROW(backend->prepare(schedule, false));
  schedule.ops[0].flops = 4e13;
  EXPECT_THROW(backend->prepare(schedule, false), UsageError);
  schedule.ops[0].flops = 0;
  schedule.ops[0].bytes = Bytes{1} << 50;
  EXPECT_THROW(backend->prepare(schedule, false), UsageError);
}

// With one core for everything, no two pieces of work overlap, but every one is done.
TEST(HostBackendSettings, FewerCoresStillFinish) {
  HostBackendSettings settings = small_settings();
  settings.cores = 1;
  const auto backend = make_host_backend(settings);
  TraceBuilder builder;
  for (const char* name : {"compute", "in", "out"})
    builder.add_stream(name, name == std::string("compute") ? StreamRole::compute : StreamRole::copy);
  builder.trace().ops.resize(16);
  const Trace schedule = std::move(builder).finish();
  backend->prepare(schedule, false);
  const Buffer host = backend->allocate_host(MiB(1), true);
  const auto address = backend->device_memory().obtain(MiB(1));
  const Buffer memory{PlaceClass::device, reinterpret_cast<void*>(*address), 0, MiB(1)};
  for (OpId id = 0; id < 30; ++id) {
    backend->kernel(3 * (id % 3), 0, {OperatorClass::gemm, DataType::fp32, 1e7, KiB(64)}, {});
    backend->copy(1, 1, {host}, {memory}, KiB(300));
    backend->copy(2, 2, {memory}, {host}, KiB(300));
  }
  backend->synchronize_device();
  std::vector<OpTimes> times;
  backend->device_times(times);
  EXPECT_NE(times[1].end, kNever);
  EXPECT_NE(times[6].end, kNever);
}

TEST(CoreGate, AdmitsAtMostItsCount) {
  CoreGate gate(2);
  std::atomic<int> inside{0}, most{0}, visits{0};
  const auto work = [&] {
    for (int i = 0; i < 200; ++i) {
      const CoreGate::Pass pass(gate);
      const int now = ++inside;
      for (int seen = most; now > seen && !most.compare_exchange_weak(seen, now);) {
      }
      ++visits;
      --inside;
    }
  };
  std::thread a(work), b(work), c(work), d(work);
  for (std::thread* thread : {&a, &b, &c, &d}) thread->join();
  EXPECT_EQ(visits, 800);
  EXPECT_LE(most, 2);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
