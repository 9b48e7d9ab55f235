// Is a machine file read as written, and is every mistake in one told with its place and the remedy?
#include "models/hw/machine_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "sim/error.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

namespace fs = std::filesystem;

class MachineFileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("memwall_machine_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  static std::string shipped(const std::string& name) {
    std::ifstream in(fs::path(MEMWALL_SOURCE) / "models/hw/machines" / (name + ".textproto"));
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  }
  std::string write(const std::string& text) {
    const fs::path path = folder_ / "mine.textproto";
    std::ofstream(path) << text;
    return path.string();
  }
  // The shipped H100 with the first `from` replaced by `to`.
  std::string changed(const std::string& from, const std::string& to) {
    std::string text = shipped("h100-sxm-80gb");
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return write(text.replace(at, from.size(), to));
  }
  // The sentence with which the file is refused.
  static std::string refusal(const std::string& path, const std::vector<std::string>& settings = {}) {
    try {
      load_machine(path, settings);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "accepted";
  }
  static bool contains(const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  }

  fs::path folder_;
};

#define EXPECT_SAYS(text, part) EXPECT_TRUE(contains(text, part)) << (text)

TEST_F(MachineFileTest, ReadsTheH100) {
  const Machine m = load_machine("h100-sxm-80gb");
  EXPECT_EQ(m.name, "h100-sxm-80gb");
  EXPECT_EQ(m.tiers[static_cast<std::size_t>(m.tier("hbm"))].capacity, 84929347584);
  EXPECT_DOUBLE_EQ(m.links[m.hbm_link].bandwidth, 3.35e12);
  EXPECT_EQ(m.links[m.dram_link].name, "host_dram");
  EXPECT_EQ(m.links[m.dram_link].sharers, 8u);
  EXPECT_EQ(m.gpu.multiprocessors, 132u);
  EXPECT_EQ(m.host.synchronize_return, microseconds(8));
}

TEST_F(MachineFileTest, TheScheduleOfOperatorClassesIsTheSchemas) {
  const Machine m = load_machine("a100-sxm-40gb");
  ASSERT_EQ(m.gpu.efficiencies.size(), 10u);
  for (int c = 0; c < 10; ++c)
    EXPECT_EQ(m.gpu.efficiencies[static_cast<std::size_t>(c)].operator_class, OperatorClass(c));
  EXPECT_DOUBLE_EQ(m.gpu.efficiencies[3].compute, 0.56);  // attention, by name in the file
}

TEST_F(MachineFileTest, TheKernelsOfAttentionAreTheSchemas) {
  for (std::size_t k = 0; k < kAttentionKernels; ++k) {
    const auto kernel = static_cast<AttentionKernel>(k);
    std::string text = shipped("b200-sxm-180gb");
    const std::size_t first = text.find("kernel: "), end = text.find('\n', first);
    text.replace(first, end - first, "kernel: " + std::string(to_string(kernel)));
    for (std::size_t at = text.find("  attention {", end); at != std::string::npos; at = text.find("  attention {", at))
      text.erase(at, text.find("\n  }\n", at) + 5 - at);
    const Machine m = load_machine(write(text));
    ASSERT_EQ(m.gpu.attention.size(), 1u);
    EXPECT_EQ(m.gpu.attention.front().kernel, kernel);
  }
}

TEST_F(MachineFileTest, EveryShippedMachineIsWhole) {
  const auto machines = list_machines();
  EXPECT_EQ(machines.size(), 48u);
  for (const MachineSummary& summary : machines) {
    const Machine m = load_machine(summary.name);
    EXPECT_EQ(m.name, summary.name);
    EXPECT_TRUE(summary.description.ends_with(".")) << summary.description;
    for (const char* tier : {"hbm", "host", "nvme", "peer_hbm"}) EXPECT_GE(m.tier(tier), 0) << m.name << " " << tier;
    const auto route = [&](const char* a, const char* b) { return m.route(m.tier(a), m.tier(b), false); };
    EXPECT_TRUE(route("host", "hbm") && route("hbm", "host") && route("hbm", "peer_hbm") && route("peer_hbm", "hbm"));
    EXPECT_TRUE(route("nvme", "host") && route("host", "nvme"));
    // Where GPUDirect Storage was measured; elsewhere what goes to drives is staged in host memory.
    const bool direct = std::set<std::string>{"a100-pcie-80gb", "h200-sxm-141gb", "hgx-h200", "l40s"}.contains(m.name);
    EXPECT_EQ(route("nvme", "hbm") != nullptr, direct) << m.name;
    EXPECT_EQ(route("hbm", "nvme") != nullptr, direct) << m.name;
    EXPECT_TRUE(m.route(m.tier("host"), m.tier("hbm"), true)->pageable);
    for (const Route& r : m.routes) {
      EXPECT_TRUE(std::isfinite(r.bandwidth) && r.bandwidth > 0);
      for (const auto link : r.links) EXPECT_LE(r.bandwidth, m.links[link].bandwidth);
    }
    EXPECT_TRUE(m.fabric(2));
  }
}

TEST_F(MachineFileTest, EveryNumberHasAUnitWhereItNeedsOneAndASource) {
  for (const MachineSummary& summary : list_machines()) {
    const auto numbers = machine_numbers(summary.name);
    EXPECT_GT(numbers.size(), 70u);
    for (const MachineNumber& n : numbers) {
      EXPECT_FALSE(n.value.empty()) << n.path;
      EXPECT_GT(n.source.size(), 2u) << n.path;
    }
  }
}

TEST_F(MachineFileTest, DuplexSharesAreKeptUnderLoadFromBothSides) {
  const Machine m = load_machine("a100-sxm-40gb");
  const Link& duplex = m.links[static_cast<std::size_t>(m.link("pcie_duplex"))];
  EXPECT_NEAR(duplex.bandwidth, 26e9 * (0.715 + 0.74), 1);
  const Route* in = m.route(m.tier("host"), m.tier("hbm"), false);
  const Route* out = m.route(m.tier("hbm"), m.tier("host"), false);
  // Max-min fairness by weight: the published 18.6 GB/s to the device under opposite traffic.
  EXPECT_NEAR(duplex.bandwidth * in->weight / (in->weight + out->weight), 18.59e9, 1e7);
  EXPECT_DOUBLE_EQ(in->bandwidth, 26e9) << "alone a direction has the whole wire";
}

TEST_F(MachineFileTest, OverridesByDottedPath) {
  const Machine m = load_machine("h100-sxm-80gb", {"gpu.hbm.bandwidth=4TB/s", "link.pcie_h2d.bandwidth=30 GB/s",
                                                   "fabric.nvlink.max_ranks=1", "gpu.peak.bf16.rate=1 PFLOP/s"});
  EXPECT_DOUBLE_EQ(m.links[m.hbm_link].bandwidth, 4e12);
  EXPECT_DOUBLE_EQ(m.route(m.tier("host"), m.tier("hbm"), false)->bandwidth, 30e9);
  EXPECT_EQ(m.fabric(8)->name, "pcie") << "max_ranks=1 takes NVLink out of use";
  for (const MachineNumber& n : machine_numbers("h100-sxm-80gb", {"gpu.hbm.bandwidth=4TB/s"})) {
    if (n.path == "gpu.hbm.bandwidth") {
      EXPECT_EQ(n.value + " " + n.source, "4TB/s --set");
    }
  }
}

TEST_F(MachineFileTest, ABadOverrideIsAUsageError) {
  EXPECT_THROW(load_machine("h100-sxm-80gb", {"gpu.hbm.bandwith=4TB/s"}), UsageError);
  EXPECT_SAYS(refusal("h100-sxm-80gb", {"gpu.hbm.bandwith=4TB/s"}), "(nearest: \"gpu.hbm.bandwidth\")");
  EXPECT_SAYS(refusal("h100-sxm-80gb", {"gpu.hbm.bandwidth=4"}), "\"4\" has no unit; expected a bandwidth");
  EXPECT_SAYS(refusal("h100-sxm-80gb", {"gpu.hbm.bandwidth"}), "has no value");
  EXPECT_SAYS(refusal("h100-sxm-80gb", {"link.pcie_h2x.bandwidth=4 GB/s"}), "link.pcie_h2d.bandwidth");
}

TEST_F(MachineFileTest, AnUnknownMachineNamesTheNearest) {
  EXPECT_THROW(load_machine("h100-sxm-80g"), UsageError);
  EXPECT_SAYS(refusal("h100-sxm-80g"), "(nearest: \"h100-sxm-80gb\"");
  EXPECT_SAYS(refusal("h100-sxm-80g"), "`memwall machines` lists all ");
  EXPECT_EQ(refusal("h100-sxm-80g").find("rtx-3090"), std::string::npos) << "names of other GPUs are no help";
  EXPECT_THROW(load_machine("./nowhere.textproto"), InputError);
}

TEST_F(MachineFileTest, AMisspelledKeyIsToldWithLineAndNearestName) {
  const std::string path = changed("multiprocessors {", "multiprocesors {");
  EXPECT_THROW(load_machine(path), InputError);
  EXPECT_SAYS(refusal(path), "mine.textproto:15:");
  EXPECT_SAYS(refusal(path), "unknown key \"multiprocesors\" in Gpu (nearest: \"multiprocessors\")");
}

TEST_F(MachineFileTest, AMissingUnitIsToldWithLineAndKey) {
  const std::string path = changed("3.35 TB/s", "3.35");
  EXPECT_THROW(load_machine(path), InputError);
  EXPECT_SAYS(refusal(path), "mine.textproto:23:");
  EXPECT_SAYS(refusal(path), "gpu.hbm.bandwidth: \"3.35\" has no unit; expected a bandwidth such as \"3.35 TB/s\"");
}

TEST_F(MachineFileTest, AMissingSourceIsRefused) {
  const std::string path =
      changed("value: \"132\" source: \"numSms in a Kineto capture of this GPU\"", "value: \"132\"");
  EXPECT_SAYS(refusal(path), "gpu.multiprocessors has no source; expected source: \"where 132 comes from\"");
}

TEST_F(MachineFileTest, WhatWasFittedMustSayHowWell) {
  std::string text = shipped("h100-sxm-80gb");
  const std::size_t attention = text.find("\n  attention {"), begin = text.find("    residual", attention);
  text.erase(begin, text.find('\n', begin) - begin);
  const std::string path = write(text);
  EXPECT_THROW(load_machine(path), InputError);
  EXPECT_SAYS(
      refusal(path),
      "gpu.attention.flash_attention_2.forward was fitted, but gpu.attention.flash_attention_2.residual is missing; "
      "expected");
}

TEST_F(MachineFileTest, AMissingKeyIsNamedWithAnExample) {
  std::string text = shipped("h100-sxm-80gb");
  const std::size_t begin = text.find("  l2_capacity"), end = text.find('\n', begin);
  const std::string path = write(text.erase(begin, end - begin));
  EXPECT_SAYS(refusal(path), "gpu.l2_capacity is missing; expected l2_capacity { value: \"80 GiB\" source: \"...\" }");
}

// A file that says nothing of pages and pinning has the costs that machine.proto names.
TEST_F(MachineFileTest, CostsOfTheAllocatorsCallsHaveDefaults) {
  std::string text = shipped("h100-sxm-80gb");
  for (const char* key : {"    page_map {", "    page_unmap {", "    pinning {", "    pinned_allocation {"}) {
    const std::size_t begin = text.find(key);
    ASSERT_NE(begin, std::string::npos) << key;
    text.erase(begin, text.find('\n', begin) + 1 - begin);
  }
  const Machine m = load_machine(write(text));
  EXPECT_EQ(m.host.page_map, microseconds(60));
  EXPECT_EQ(m.host.page_unmap, microseconds(60));
  EXPECT_EQ(m.host.pinning, 3e9);
  EXPECT_EQ(m.host.pinned_allocation, microseconds(100));
  EXPECT_EQ(load_machine("h100-sxm-80gb", {"host.calls.page_map=75us"}).host.page_map, microseconds(75));
  EXPECT_EQ(load_machine("g10-a100-40gb").host.page_map, Duration{});
}

// What a container may take counts against its limit, what the system takes does not.
TEST_F(MachineFileTest, AContainersLimitIsTheHostsMemory) {
  const auto host = [](const std::vector<std::string>& overrides) {
    const Machine m = load_machine("a100-sxm-80gb", overrides);
    return m.tiers[static_cast<std::size_t>(m.tier("host"))];
  };
  const Tier whole = host({});
  ASSERT_GT(whole.unavailable, 0);
  EXPECT_EQ(host({"host.memory_limit=64GiB"}).usable(), GiB(64));
  EXPECT_EQ(host({"host.memory_limit=64GiB"}).capacity, GiB(64));
  EXPECT_EQ(host({"host.memory_limit=100TB"}), whole) << "more than there is";
  EXPECT_EQ(host({"host.memory_limit=64GiB"}).sharers, whole.sharers) << "of all ranks together";
}

TEST_F(MachineFileTest, ALinkThatDoesNotExistIsNamedWithTheNearest) {
  const std::string path = changed("\"host_dram\", \"pcie_h2d\"", "\"host_dram\", \"pcie_h2dd\"");
  EXPECT_SAYS(refusal(path),
              "route.h2d.crosses names the link \"pcie_h2dd\", which this machine does not have "
              "(nearest: \"pcie_h2d\")");
}

TEST_F(MachineFileTest, TwoOfOneNameAreRefused) {
  EXPECT_SAYS(refusal(changed("name: \"pcie_d2h\"", "name: \"pcie_h2d\"")), "link.pcie_h2d is given twice");
}

TEST_F(MachineFileTest, AWrongEnumValueIsRefused) {
  EXPECT_SAYS(refusal(changed("data_type: fp64", "data_type: fp46")), "unknown value \"fp46\" of key \"data_type\"");
}

TEST_F(MachineFileTest, ACurveOutOfOrderIsRefused) {
  EXPECT_SAYS(refusal(changed("point: \"512 KiB: 0.28\"", "point: \"64 KiB: 0.28\"")), "out of order");
  EXPECT_SAYS(refusal(changed("point: \"512 KiB: 0.28\"", "point: \"512 KiB 0.28\"")), "has no \":\"");
}

TEST_F(MachineFileTest, NumbersThatContradictEachOtherAreRefused) {
  EXPECT_SAYS(refusal("h100-sxm-80gb", {"gpu.hbm.capacity=100MB"}), "of tier \"hbm\" 576716800 bytes are unavailable");
  EXPECT_THROW(load_machine("h100-sxm-80gb", {"gpu.hbm.capacity=100MB"}), UsageError);
  EXPECT_SAYS(refusal(changed("value: \"64 GB\"", "value: \"64 TB\"")), "of tier \"host\"");
  EXPECT_SAYS(refusal(changed("name: \"pcie_duplex\"", "name: \"pcie_h2d\"")), "two links are called \"pcie_h2d\"");
  EXPECT_SAYS(refusal("h100-sxm-80gb", {"gpu_count=0"}), "gpu_count");
  for (const char* name : {"host.calls.launch", "host.calls.page_map", "host.calls.page_unmap",
                           "host.calls.framework.eager_forward", "gpu.matrix.start_up", "gpu.efficiency.gemm.fixed"})
    EXPECT_SAYS(refusal("h100-sxm-80gb", {std::string(name) + "=-3us"}), std::string(name) + " is -3 us");
  EXPECT_NO_THROW(load_machine("h100-sxm-80gb", {"host.calls.launch_latency=-1us"})) << "seen before the call returns";
}

TEST_F(MachineFileTest, DamagedTextIsRefusedWithAPlace) {
  EXPECT_SAYS(refusal(write(shipped("h100-sxm-80gb").substr(0, 2000))), "mine.textproto:");
  EXPECT_THROW(load_machine(write(std::string("\0\xff\x7f garbage", 11))), InputError);
  EXPECT_THROW(load_machine(write("")), InputError);
  EXPECT_THROW(load_machine(write(std::string(2 << 20, ' '))), InputError);
}

TEST_F(MachineFileTest, DevicesFindTheirMachine) {
  EXPECT_EQ(machine_for_device("NVIDIA H100 80GB HBM3", 84929347584), "h100-sxm-80gb");
  EXPECT_EQ(machine_for_device("NVIDIA A100-PG509-200", 42297524224), "a100-sxm-40gb");
  EXPECT_EQ(machine_for_device("Tesla V100-SXM2-16GB", 16945512448), "v100-sxm2-16gb");
  EXPECT_EQ(machine_for_device("Tesla V100-DGXS-32GB", 34087305216), "v100-sxm2-32gb");
  EXPECT_EQ(machine_for_device("NVIDIA GeForce RTX 2080 Ti", 0), "rtx-2080ti");
  EXPECT_EQ(machine_for_device("AMD Radeon Graphics", 68702699520), "mi250");
  EXPECT_EQ(machine_for_device("AMD Radeon Graphics", GiB(16)), "") << "another card of that name";
  EXPECT_EQ(machine_for_device("Tesla T4", 15843721216), "t4");
  EXPECT_EQ(machine_for_device("NVIDIA H100 PCIe", 85028765696), "h100-pcie-80gb");
  EXPECT_EQ(machine_for_device("NVIDIA L40S", 0), "l40s");
  EXPECT_EQ(machine_for_device("NVIDIA B200", GiB(178)), "b200-sxm-180gb");
  EXPECT_EQ(machine_for_device("NVIDIA GH200 480GB", GiB(95)), "gh200-480gb");
  EXPECT_EQ(machine_for_device("AMD Instinct MI300X", 206141652992), "mi300x");
  EXPECT_EQ(machine_for_device("NVIDIA A100 80GB PCIe", 84987740160), "a100-pcie-80gb");
  EXPECT_EQ(machine_for_device("NVIDIA GeForce RTX 3090", 25438126080), "rtx-3090");
  EXPECT_EQ(machine_for_device("NVIDIA GeForce RTX 4090", 25393692672), "rtx-4090");
  EXPECT_EQ(machine_for_device("A100-PCIE-40GB", 42297524224), "a100-pcie-40gb");
  EXPECT_EQ(machine_for_device("NVIDIA A10G", 23836033024), "a10g");
  EXPECT_EQ(machine_for_device("NVIDIA L4", 23689691136), "l4");
  EXPECT_EQ(machine_for_device("NVIDIA H800", 85028765696), "h800-sxm-80gb");
  EXPECT_EQ(machine_for_device("NVIDIA H100", 100000000000), "h100-sxm-96gb-hbm2e");
  EXPECT_EQ(machine_for_device("AMD Instinct MI210", 68702699520), "mi210");
  EXPECT_EQ(machine_for_device("Tesla V100-SXM3-32GB", 34087305216), "v100-sxm3-32gb") << "not the cluster of them";
  EXPECT_EQ(machine_for_device("NVIDIA H100 80GB HBM3", 0), "h100-sxm-80gb") << "not the one with CXL memory";
  EXPECT_EQ(machine_for_device("Tesla P4", 0), "");
}

// As machine_for_device says it, with every file parsed.
std::string machine_among(const std::vector<Machine>& machines, const std::string& device, Bytes memory) {
  std::string best;
  double best_difference = 0.1;
  for (const Machine& m : machines) {
    const auto& aliases = m.gpu.aliases;
    if (m.gpu.name != device && std::find(aliases.begin(), aliases.end(), device) == aliases.end()) continue;
    const auto capacity = static_cast<double>(m.tiers.front().capacity);
    const double difference = memory > 0 ? std::abs(static_cast<double>(memory) - capacity) / capacity : 0;
    if (difference > best_difference || (!best.empty() && difference == best_difference)) continue;
    best = m.name;
    best_difference = difference;
  }
  return best;
}

TEST_F(MachineFileTest, DevicesFindTheMachineThatParsingEveryFileWouldFind) {
  const std::vector<Machine> machines = whole_machines();
  for (const Machine& m : machines) {
    std::vector<std::string> names = m.gpu.aliases;
    names.push_back(m.gpu.name);
    names.push_back(m.gpu.name.substr(1));
    for (const std::string& name : names)
      for (const Bytes memory : {Bytes{0}, m.tiers.front().capacity, m.tiers.front().capacity / 2})
        EXPECT_EQ(machine_for_device(name, memory), machine_among(machines, name, memory)) << name;
  }
}

TEST_F(MachineFileTest, AMachineIsKnownByTheNameOfItsFile) {
  EXPECT_TRUE(has_machine("t4"));
  EXPECT_FALSE(has_machine("t5"));
  EXPECT_FALSE(has_machine("T4"));
  EXPECT_FALSE(has_machine(""));
  EXPECT_FALSE(has_machine("./t4.textproto")) << "a path is no name";
}

TEST_F(MachineFileTest, ADamagedFileLeavesTheOthersListed) {
  std::ofstream(folder_ / "sound.textproto") << shipped("t4");
  std::ofstream(folder_ / "broken.textproto") << "name: \"broken\"\n";
  setenv("MEMWALL_MACHINES", folder_.c_str(), 1);
  std::vector<std::string> damaged;
  const auto machines = list_machines(&damaged);
  const std::string found = machine_for_device("Tesla T4", 0);
  unsetenv("MEMWALL_MACHINES");
  ASSERT_EQ(machines.size(), 1u);
  EXPECT_EQ(machines[0].name, "sound");
  EXPECT_EQ(found, "sound");
  ASSERT_EQ(damaged.size(), 1u);
  EXPECT_SAYS(damaged[0], "broken.textproto:1:1: description is missing");
}

TEST_F(MachineFileTest, CurvesHaveTheUnitOfWhatTheyHold) {
  const Machine m = load_machine("a100-sxm-80gb");
  EXPECT_NEAR(m.gpu.load_latency.at(1 << 20), 200e-9, 100e-9) << "a load from the L2";
  EXPECT_GT(m.gpu.private_read_bandwidth.at(64 << 10), 3 * m.gpu.shared_read_bandwidth.at(16 << 20));
  std::string text = shipped("a100-sxm-80gb");
  const std::size_t at = text.find("point:", text.find("load_latency {"));
  const std::size_t end = text.find('\n', at);
  EXPECT_SAYS(refusal(write(text.replace(at, end - at, "point: \"1 KiB: 0.4\""))),
              "gpu.load_latency: \"0.4\" has no unit");
}

TEST_F(MachineFileTest, StorageIsNoFasterThanItsRequestsAllow) {
  const Machine m = load_machine("rtx-3090");
  const Route* read = m.route(m.tier("nvme"), m.tier("host"), false);
  EXPECT_DOUBLE_EQ(read->bandwidth, 7e9);
  EXPECT_EQ(read->requests.block, 1 << 20);
  const Machine one = load_machine("rtx-3090", {"route.nvme_to_host.requests.depth=1"});
  EXPECT_NEAR(one.route(one.tier("nvme"), one.tier("host"), false)->bandwidth, 1048576 / 1.4e-3, 1e3);
  const Machine few = load_machine("rtx-3090", {"route.nvme_to_host.requests.rate=1000Hz"});
  EXPECT_NEAR(few.route(few.tier("nvme"), few.tier("host"), false)->bandwidth, 1048576e3, 1);
}

TEST_F(MachineFileTest, TheCxlHostHasFourTiersAndWaysBetweenThem) {
  const Machine m = load_machine("h100-sxm-80gb-cxl");
  for (const auto& [from, to] : {std::pair{"cxl", "host"}, {"host", "cxl"}, {"cxl", "hbm"}, {"hbm", "cxl"}})
    EXPECT_TRUE(m.route(m.tier(from), m.tier(to), false)) << from << " to " << to;
  EXPECT_EQ(m.tiers[static_cast<std::size_t>(m.tier("cxl"))].tier_class, TierClass::host);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
