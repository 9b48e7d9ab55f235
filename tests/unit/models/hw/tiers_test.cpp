// Machines of more than two tiers, from files alone: do policies, pagers and prices follow what the files say? Times
// and bytes are worked out by hand from the round numbers of tests/machines.
#include <gtest/gtest.h>

#include "models/hw/machine_file.h"
#include "models/hw/pricer.h"
#include "sim/error.h"
#include "sim/trace/trace_check.h"
#include "tests/support/offload_chain.h"
#include "traces/run/analysis/energy.h"
#include "traces/run/run_recorder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Machine machine_of(const char* name, const std::vector<std::string>& settings = {}) {
  return load_machine(std::string(MEMWALL_SOURCE) + "/tests/machines/" + name + ".textproto", settings);
}
Machine four_tiers(const std::vector<std::string>& settings = {}) { return machine_of("four-tiers", settings); }
Machine near_memory(const std::vector<std::string>& settings = {}) { return machine_of("near-memory", settings); }

Trace rewritten(const Trace& trace, const std::vector<std::string>& texts, const Machine& machine) {
  std::vector<PolicySpec> policies;
  for (const std::string& text : texts) policies.push_back(parse_policy(text));
  Trace result = apply_rewriters(trace, policies, machine, *make_pricer(machine));
  EXPECT_TRUE(check(result).empty());
  return result;
}

std::string refused(const Trace& trace, const std::string& policy, const Machine& machine) {
  try {
    rewritten(trace, {policy}, machine);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(FourTiers, ActivationsGoStraightToTheTierThatIsNamed) {
  const Machine machine = four_tiers();
  const Trace trace = rewritten(activation_chain(6), {"offload:what=activations,buffers=1,to=cxl"}, machine);
  const SimulationResult result = run(trace, machine);
  for (const char* link : {"pcie_d2h", "cxl_write", "pcie_h2d", "cxl_read"})
    EXPECT_EQ(link_bytes(result, machine, link), 5 * kGB) << link;
  EXPECT_EQ(link_bytes(result, machine, "cxl_memory"), 10 * kGB);
  EXPECT_EQ(link_bytes(result, machine, "host_dram"), 0);
  EXPECT_EQ(peak(result, machine, "cxl"), 5 * kGB);
  EXPECT_EQ(peak(result, machine, "host"), 0);
  // CXL's 10 GB/s, 100 ms each, is as fast as the kernels: as to the host in offload_test.cpp.
  EXPECT_EQ(result.end, milliseconds(1300));
}

TEST(FourTiers, StorageAndAnyTierCanBeStagedInHostMemory) {
  const Machine machine = four_tiers();
  const SimulationResult nvme =
      run(rewritten(activation_chain(6), {"offload:what=activations,buffers=1,to=nvme"}, machine), machine);
  EXPECT_EQ(link_bytes(nvme, machine, "nvme_write"), 5 * kGB);
  EXPECT_EQ(peak(nvme, machine, "nvme"), 5 * kGB);
  EXPECT_EQ(peak(nvme, machine, "host"), 4 * kGB);  // two buffers each way
  const SimulationResult staged =
      run(rewritten(activation_chain(6), {"offload:what=activations,buffers=1,to=cxl,via=host"}, machine), machine);
  EXPECT_EQ(link_bytes(staged, machine, "host_dram"), 4 * 5 * kGB);
  EXPECT_EQ(link_bytes(staged, machine, "cxl_read"), 5 * kGB);
  EXPECT_EQ(peak(staged, machine, "cxl"), 5 * kGB);
}

TEST(FourTiers, TwoPoliciesUseTwoTiers) {
  const Machine machine = four_tiers();
  Chain chain;
  const StorageId p = chain.b.add_storage(kGB, StorageKind::parameter, "hbm", "p", true);
  const StorageId m = chain.b.add_storage(2 * kGB, StorageKind::optimizer_state, "hbm", "m", true);
  std::vector<StorageId> a;
  for (int i = 0; i < 4; ++i) {
    a.push_back(chain.make(kGB, StorageKind::activation, Phase::forward, numbered('a', i)));
    chain.kernel(Phase::forward, {p}, {a.back()});
  }
  const StorageId g = chain.make(kGB, StorageKind::gradient, Phase::backward, "g");
  for (int i = 3; i >= 0; --i) {
    chain.kernel(Phase::backward, {a[static_cast<std::size_t>(i)], p}, {g});
    chain.drop(a[static_cast<std::size_t>(i)], Phase::backward);
  }
  chain.kernel(Phase::optimizer, {p, g, m}, {p, m}, milliseconds(50));
  chain.drop(g, Phase::optimizer);
  const Trace trace = rewritten(
      chain.finish(), {"offload:what=optimizer,to=nvme", "offload:what=activations,to=cxl,buffers=1"}, machine);
  const SimulationResult result = run(trace, machine);
  EXPECT_TRUE(result.fits);
  EXPECT_EQ(peak(result, machine, "nvme"), 3 * kGB);  // two moments and the fp32 master
  EXPECT_EQ(peak(result, machine, "cxl"), 3 * kGB);
  EXPECT_EQ(link_bytes(result, machine, "nvme_read"), 3 * kGB);
}

TEST(FourTiers, TheCpuWorksInMemoryBehindCxlAtTheRateOfTheWayThere) {
  const Machine machine = four_tiers();
  const Trace trace = rewritten(training_step(1, kGB, false), {"offload:what=optimizer,to=cxl"}, machine);
  const SimulationResult result = run(trace, machine);
  // 250 M parameters x 28 bytes, half of them over each of cxl_read and cxl_write: 3.5 GB at 10 GB/s = 350 ms, where
  // all of it takes 70 ms in host DRAM. 200 ms of kernels, gradient down 100 ms, parameter up 100 ms.
  EXPECT_EQ(result.end, milliseconds(200 + 100 + 350 + 100));
  EXPECT_EQ(link_bytes(result, machine, "cxl_read"), 3'500'000'000 + kGB);
  EXPECT_EQ(link_bytes(result, machine, "cxl_write"), 3'500'000'000 + kGB);
  EXPECT_EQ(link_bytes(result, machine, "host_dram"), 0);
  EXPECT_EQ(peak(result, machine, "cxl"), 4 * kGB);
}

TEST(FourTiers, RefusalsNameTheTiersThereAre) {
  const Machine machine = four_tiers();
  EXPECT_NE(refused(activation_chain(3), "offload:what=activations,to=cx", machine).find("Did you mean 'cxl'?"),
            std::string::npos);
  EXPECT_NE(refused(activation_chain(3), "offload:what=activations,to=hbm", machine), "");
  EXPECT_NE(refused(activation_chain(3), "offload:what=activations,to=nvme,via=none", machine)
                .find("no route from hbm to nvme"),
            std::string::npos);
  EXPECT_NE(refused(activation_chain(3), "offload:what=activations,to=cxl,via=nvme", machine).find("no memory of the"),
            std::string::npos);
  EXPECT_NE(refused(activation_chain(3), "offload:what=activations,to=nvme,via=host,pinned=0", machine), "");
  EXPECT_NE(refused(training_step(1, kGB, false), "offload:what=optimizer,to=cxl,group=5", machine), "");
}

// All of `count` activations of 1 GB, under a GPU that holds four.
SimulationResult paged(int count, const std::string& pager, const Machine& machine) {
  const Trace trace = activation_chain(count);
  const PolicySpec spec = parse_policy(pager);
  const auto lru = spec.info->make_pager(spec.arguments);
  SimulationOptions options;
  options.allocator = "ideal";
  options.pager = lru.get();
  return simulate(trace, machine, options);
}

TEST(FourTiers, LruFillsTiersInTheOrderOfTheList) {
  const std::vector<std::string> small = {"gpu.hbm.capacity=4GB", "host.dram.capacity=3GB", "tier.cxl.capacity=2GB",
                                          "tier.nvme.capacity=4GB"};
  const Machine machine = four_tiers(small);
  const SimulationResult fits = paged(12, "lru", machine);
  for (const TierResult& tier : fits.tiers) EXPECT_EQ(tier.missing, 0) << tier.peak_allocated;
  EXPECT_TRUE(fits.fits);
  EXPECT_EQ(peak(fits, machine, "host"), 3 * kGB);
  EXPECT_EQ(peak(fits, machine, "cxl"), 2 * kGB);
  EXPECT_GT(peak(fits, machine, "nvme"), 2 * kGB);
  EXPECT_LE(peak(fits, machine, "nvme"), 4 * kGB);
  const SimulationResult listed = paged(8, "lru:to=nvme+cxl", machine);
  EXPECT_TRUE(listed.fits);
  EXPECT_EQ(peak(listed, machine, "nvme"), 4 * kGB);
  EXPECT_EQ(peak(listed, machine, "host"), 0);
  // 12 GB are there, 14 are wanted: the GPU is where it is seen.
  const SimulationResult full = paged(16, "lru:to=host+cxl+nvme", machine);
  EXPECT_FALSE(full.fits);
  EXPECT_GT(full.tiers[static_cast<std::size_t>(machine.tier("hbm"))].missing, 0);
  for (const char* tier : {"host", "cxl", "nvme"})
    EXPECT_EQ(full.tiers[static_cast<std::size_t>(machine.tier(tier))].missing, 0) << tier;
  EXPECT_THROW(paged(3, "lru:to=cxl+hbm", machine), UsageError);
  EXPECT_THROW(paged(3, "lru:to=cxl+cxl", machine), UsageError);
  EXPECT_THROW(paged(3, "lru:to=tape", machine), UsageError);
}

TEST(NearMemory, CompressedMemoryHoldsMoreAndItsWireCarriesLess) {
  const Machine machine = near_memory();
  const Trace trace = rewritten(activation_chain(2), {"offload:what=activations,buffers=0,to=zram"}, machine);
  const SimulationResult result = run(trace, machine);
  EXPECT_EQ(link_bytes(result, machine, "compressor"), 2 * kGB);
  EXPECT_EQ(link_bytes(result, machine, "decompressor"), 2 * kGB);
  for (const char* link : {"pcie_d2h", "pcie_h2d"}) EXPECT_EQ(link_bytes(result, machine, link), kGB) << link;
  EXPECT_EQ(peak(result, machine, "zram"), 2 * kGB);
  // Out at the compressor's 30 GB/s, although PCIe has 20; back at 40 GB/s, twice PCIe's.
  EXPECT_EQ(make_pricer(machine)->copy("hbm", "zram", 3 * kGB, false), milliseconds(100));
  EXPECT_EQ(make_pricer(machine)->copy("zram", "hbm", 4 * kGB, false), milliseconds(100));
  // Without compression the same route has PCIe's rate, and all bytes cross it.
  const Machine plain = near_memory({"tier.zram.compression=1"});
  EXPECT_EQ(make_pricer(plain)->copy("hbm", "zram", 2 * kGB, false), milliseconds(100));
  EXPECT_EQ(link_bytes(run(trace, plain), plain, "pcie_d2h"), 2 * kGB);
}

TEST(NearMemory, CapacityCountsStoredBytes) {
  const std::vector<std::string> five = {"tier.zram.capacity=2.5GB"};
  const auto missing = [&](int layers, const Machine& machine) {
    const Trace trace = rewritten(activation_chain(layers), {"offload:what=activations,buffers=0,to=zram"}, machine);
    return run(trace, machine).tiers[static_cast<std::size_t>(machine.tier("zram"))].missing;
  };
  // All activations leave: pinned memory takes whole powers of two (1.07 GB each), of which 5 GB hold 4.
  EXPECT_EQ(missing(4, near_memory(five)), 0);
  EXPECT_GT(missing(8, near_memory(five)), 0);
  EXPECT_GT(missing(4, near_memory({"tier.zram.capacity=2.5GB", "tier.zram.compression=1"})), 0);
}

TEST(NearMemory, TheOptimizerRunsWhereItsStatesLie) {
  const Machine machine = near_memory();
  const Trace trace = rewritten(training_step(1, kGB, false), {"offload:what=optimizer,to=pim"}, machine);
  const SimulationResult result = run(trace, machine);
  // 250 M parameters: 28 bytes each at 140 GB/s = 50 ms, 16 FLOPs each at 100 GFLOP/s = 40 ms. Gradient and parameter
  // cross 10 GB/s.
  EXPECT_EQ(result.end, milliseconds(200 + 100 + 50 + 100));
  EXPECT_EQ(link_bytes(result, machine, "pim_write"), kGB);
  EXPECT_EQ(link_bytes(result, machine, "pim_read"), kGB);
  EXPECT_EQ(link_bytes(result, machine, "pim_memory"), 7 * kGB + 2 * kGB);
  EXPECT_EQ(link_bytes(result, machine, "host_dram"), 0);
  EXPECT_EQ(peak(result, machine, "pim"), 4 * kGB);
  EXPECT_EQ(peak(result, machine, "hbm"), 2 * kGB);
  // Bound by arithmetic: 4 GFLOP at 20 GFLOP/s.
  const Machine slow = near_memory({"tier.pim.compute=20GFLOP/s"});
  EXPECT_EQ(make_pricer(slow)->memory_work("pim", 7 * kGB, 4e9), milliseconds(200));
  EXPECT_EQ(make_pricer(machine)->memory_work("host", 7 * kGB, 4e9), milliseconds(70));
}

TEST(NearMemory, AComputingDriveIsReachedThroughTheHost) {
  const Machine machine = near_memory();
  const Trace trace = rewritten(training_step(1, kGB, false), {"offload:what=optimizer,to=ssd"}, machine);
  const SimulationResult result = run(trace, machine);
  // 28 GB/s of flash: 250 ms, 10 GFLOP/s: 400 ms. Gradient 50 ms over PCIe and 250 ms to the drive, parameter 200
  // and 50.
  EXPECT_EQ(result.end, milliseconds(200 + 50 + 250 + 400 + 200 + 50));
  EXPECT_EQ(link_bytes(result, machine, "ssd_write"), kGB);
  EXPECT_EQ(link_bytes(result, machine, "ssd_read"), kGB);
  EXPECT_EQ(link_bytes(result, machine, "flash"), 7 * kGB);
  EXPECT_EQ(peak(result, machine, "ssd"), 4 * kGB);
}

TEST(NearMemory, FilesThatDoNotGoTogetherAreRefused) {
  EXPECT_THROW(near_memory({"tier.zram.compression=0.5"}), UsageError);
  EXPECT_THROW(near_memory({"tier.zram.compression=100000000"}), UsageError);
  EXPECT_THROW(near_memory({"tier.zram.compression=1000000", "tier.zram.capacity=1000000TiB"}), UsageError);
  EXPECT_THROW(four_tiers({"tier.nvme.compute=1GFLOP/s"}), UsageError);  // names no memory link
}

TEST(Energy, IsTheSumOfWhatTheFileStates) {
  const Machine machine = four_tiers();
  RunSettings settings;
  settings.allocator = "ideal";
  const memwall::Run recorded = simulate_and_record(
      rewritten(activation_chain(6), {"offload:what=activations,buffers=1,to=cxl"}, machine), machine, settings);
  const StepEnergyPrice energy_price = step_energy_price(recorded);
  // 1.3 s: 100 W always, 400 W more while kernels run, which is 1.2 s; 300 W of the host.
  EXPECT_EQ(energy_price.gpus, 1u);
  EXPECT_DOUBLE_EQ(energy_price.busy_share, 1.2 / 1.3);
  EXPECT_DOUBLE_EQ(energy_price.gpu_idle, 130);
  EXPECT_DOUBLE_EQ(energy_price.gpu_load, 480);
  ASSERT_TRUE(energy_price.host.has_value());
  EXPECT_DOUBLE_EQ(*energy_price.host, 390);
  // 5 GB each way: PCIe 40 pJ/B, CXL 60 pJ/B, and 150 pJ for each byte written to the memory behind it or read.
  const double moved = 10e9 * (40 + 60 + 150) * 1e-12;
  ASSERT_TRUE(energy_price.energy.has_value());
  EXPECT_NEAR(*energy_price.energy, 130 + 480 + 390 + moved, 1e-9);
  EXPECT_NEAR(*energy_price.tiers[static_cast<std::size_t>(machine.tier("hbm"))].joules, 10e9 * 56e-12, 1e-9);
  EXPECT_TRUE(energy_price.tiers[static_cast<std::size_t>(machine.tier("hbm"))].in_gpu_power);
  ASSERT_TRUE(energy_price.price.has_value());
  EXPECT_DOUBLE_EQ(*energy_price.price, 3.6 / 3600 * 1.3);
  EXPECT_TRUE(energy_price.missing.empty());
}

TEST(Energy, CountsFoldedRanksAndIdleTimeAndSaysWhatIsMissing) {
  Machine machine = four_tiers();
  machine.gpu_count = 4;
  Trace trace = training_step(1, kGB, false);
  trace = rewritten(trace, {"offload:what=optimizer"}, machine);
  trace.ranks = 4;
  RunSettings settings;
  settings.allocator = "ideal";
  memwall::Run recorded = simulate_and_record(trace, machine, settings);
  const double step = to_seconds(recorded.result.end);
  StepEnergyPrice energy_price = step_energy_price(recorded);
  EXPECT_EQ(energy_price.gpus, 4u);
  EXPECT_DOUBLE_EQ(energy_price.gpu_idle, 4 * 100 * step);
  EXPECT_NEAR(energy_price.gpu_load, 4 * 400 * 0.2, 1e-9);  // 200 ms of kernels
  EXPECT_DOUBLE_EQ(*energy_price.host, 300 * step);         // all GPUs of the host take part
  EXPECT_DOUBLE_EQ(*energy_price.price, 4 * 3.6 / 3600 * step);
  // Each rank has PCIe of its own (sharers 1): 1 GB each way and rank.
  EXPECT_DOUBLE_EQ(energy_price.links[static_cast<std::size_t>(machine.link("pcie_d2h"))].bytes, 4e9);
  recorded.machine.idle_watts = recorded.machine.dollars_per_hour = 0;
  energy_price = step_energy_price(recorded);
  EXPECT_FALSE(energy_price.energy.has_value());
  EXPECT_FALSE(energy_price.price.has_value());
  EXPECT_EQ(energy_price.missing, (std::vector<std::string>{"idle_power", "price"}));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
