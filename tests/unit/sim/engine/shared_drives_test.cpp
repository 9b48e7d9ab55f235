// Do ranks that read and write the drives of one host get what closed forms say: on one drive, on a RAID 0 of several,
// and where requests or the host's memory hold one of them up before the drives do?
#include <gtest/gtest.h>

#include <algorithm>

#include "sim/engine/simulation.h"
#include "sim/machine/route_bound.h"
#include "sim/trace/trace_builder.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Bytes kBytes = 12'000'000'000;
constexpr double kDriveReads = 3e9, kDriveWrites = 2e9;  // bytes per second of one drive

// Eight GPUs on one host with `drives` drives, striped: every transfer is spread over all of them (RAID 0), so that the
// link has the bandwidth of all.
Machine host_with(std::uint32_t drives) {
  Machine m = test_machine();
  m.host.cores = 0;
  m.tiers[static_cast<std::size_t>(m.tier("nvme"))].drives = drives;
  m.links[m.dram_link].sharers = 8;
  for (const auto& [name, each] : {std::pair("nvme_read", kDriveReads), std::pair("nvme_write", kDriveWrites)}) {
    Link& link = m.links[static_cast<std::size_t>(m.link(name))];
    link.bandwidth = each * drives;
    link.sharers = 8;
  }
  for (Route& route : m.routes)
    if (route.engine == 3 || route.engine == 4)
      route.bandwidth = (route.engine == 3 ? kDriveReads : kDriveWrites) * drives;
  return m;
}

Op io(const Machine& m, const Trace& trace, bool reads) {
  Op op;
  op.kind = OpKind::storage_io;
  op.from = reads ? 1 : 0;
  op.to = reads ? 0 : 1;
  op.bytes = kBytes;
  const Route* route = m.route(m.tier(trace.places[op.from]), m.tier(trace.places[op.to]), false);
  op.duration = from_seconds(static_cast<double>(kBytes) / bound_of(m, *route).bandwidth);
  op.added = true;
  return op;
}

// Every rank reads, or writes, or both at once on streams of their own.
double seconds(const Machine& m, std::uint32_t ranks, bool reads, bool writes) {
  TraceBuilder builder;
  builder.trace().name = "drives";
  builder.trace().knowledge.timing = true;
  builder.trace().places = {"host", "nvme"};
  builder.trace().ranks = ranks;
  builder.add_thread("main");
  const std::uint16_t in = builder.add_stream("reads", StreamRole::storage);
  const std::uint16_t out = builder.add_stream("writes", StreamRole::storage);
  for (const bool is_read : {true, false}) {
    if (!(is_read ? reads : writes)) continue;
    Op op = io(m, builder.trace(), is_read);
    op.stream = is_read ? in : out;
    builder.append(op);
  }
  return to_seconds(simulate(std::move(builder).finish(), m, {}).end);
}

TEST(SharedDrives, RanksOnOneDriveTakeAsOftenAsThereAreRanks) {
  const Machine m = host_with(1);
  for (const std::uint32_t n : {1u, 2u, 4u, 8u}) {
    EXPECT_NEAR(seconds(m, n, true, false), n * kBytes / kDriveReads, 1e-6) << n;
    EXPECT_NEAR(seconds(m, n, false, true), n * kBytes / kDriveWrites, 1e-6) << n;
  }
  EXPECT_NEAR(seconds(m, 16, true, false), 8 * kBytes / kDriveReads, 1e-6) << "eight to a host";
}

TEST(SharedDrives, StripedDrivesShareTheWork) {
  for (const std::uint32_t k : {2u, 4u, 8u})
    for (const std::uint32_t n : {1u, 2u, 8u}) {
      EXPECT_NEAR(seconds(host_with(k), n, true, false), n * kBytes / (k * kDriveReads), 1e-6) << n << " on " << k;
      EXPECT_NEAR(seconds(host_with(k), n, false, true), n * kBytes / (k * kDriveWrites), 1e-6) << n << " on " << k;
    }
}

// Reads and writes have a link each, as drives have; the DRAM carries both.
TEST(SharedDrives, ReadsAndWritesMeetInTheHostsMemoryOnly) {
  Machine m = host_with(4);
  EXPECT_NEAR(seconds(m, 4, true, true), 4 * kBytes / (4 * kDriveWrites), 1e-6) << "the slower of the two";
  m.links[m.dram_link].bandwidth = 1e10;  // less than 12 + 8 GB/s
  EXPECT_NEAR(seconds(m, 4, true, true), 2 * 4 * kBytes / 1e10, 1e-6);
}

// One transfer has at most so many requests under way (Little's law), on however many drives: several ranks together
// have as many times more.
TEST(SharedDrives, ARankThatAsksTooLittleLeavesDrivesToOthers) {
  Machine m = host_with(4);  // 12 GB/s of reads
  for (Route& route : m.routes)
    if (route.engine == 3) {
      route.requests = {.block = 1'000'000, .depth = 8, .latency = microseconds(2000), .per_second = 0};  // 4 GB/s
      route.bandwidth = 4e9;
    }
  EXPECT_NEAR(seconds(m, 1, true, false), kBytes / 4e9, 1e-6);
  EXPECT_NEAR(seconds(m, 3, true, false), kBytes / 4e9, 1e-6) << "three fill the drives";
  EXPECT_NEAR(seconds(m, 8, true, false), 8 * kBytes / 12e9, 1e-6);
}

// Drives that fill their caches are one thing for all ranks: they fall off when all of them have written as much.
TEST(SharedDrives, AFullWriteCacheIsFullForAll) {
  Machine m = host_with(2);
  Link& write = m.links[static_cast<std::size_t>(m.link("nvme_write"))];
  write.write_cache = 30'000'000'000;
  write.sustained = 1e9;
  m.tiers[static_cast<std::size_t>(m.tier("nvme"))].write_link = m.link("nvme_write");
  // Four ranks write 48 GB at 4 GB/s, while 1 GB/s is emptied: full after 10 s and 40 GB; the rest at 1 GB/s.
  EXPECT_NEAR(seconds(m, 4, false, true), 10 + 8, 1e-6);
  EXPECT_NEAR(seconds(m, 2, false, true), 6, 1e-6) << "24 GB do not fill it";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
