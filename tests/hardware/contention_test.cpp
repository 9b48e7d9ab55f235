// Ranks that share a host: the simulator against closed forms, and rows of several processes against what one process
// measured. Nothing here is timed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "models/hw/machine_file.h"
#include "models/hw/pricer.h"
#include "sim/engine/simulation.h"
#include "sim/trace/trace_builder.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/validation_folder.h"
#include "validate/report/contention.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::string replaced(std::string text, const std::string& old_text, const std::string& new_text) {
  const std::size_t at = text.find(old_text);
  EXPECT_NE(at, std::string::npos) << old_text;
  return at == std::string::npos ? text : text.replace(at, old_text.size(), new_text);
}

// A machine file of one socket with eight GPUs: each has a link of 25 GB/s to a switch, two of them share the switch's
// uplink of 32 GB/s, and all share the DRAM.
Machine one_socket(double dram_bandwidth) {
  const ScratchFolder scratch;
  std::string text = content_of(std::filesystem::path(MEMWALL_SOURCE) / "models/hw/machines/host-emulation.textproto");
  text = replaced(text, "gpu_count { value: \"1\"", "gpu_count { value: \"8\"");
  text = replaced(text, "bandwidth { value: \"20 GB/s\"",
                  fmt::format("bandwidth {{ value: \"{} GB/s\"", dram_bandwidth / 1e9));
  text = replaced(text, "bandwidth { value: \"10 GB/s\"", "bandwidth { value: \"400 GB/s\"");
  text = replaced(text, "  optimizer_bandwidth {",
                  "  dram_sharers { value: \"8\" source: \"test\" }\n  optimizer_bandwidth {");
  text = replaced(text, "name: \"pcie_d2h\"\n  bandwidth { value: \"1 GB/s\"",
                  "name: \"uplink\"\n  bandwidth { value: \"32 GB/s\" source: \"test\" }\n"
                  "  sharers { value: \"2\" source: \"test\" }\n}\n"
                  "link {\n  name: \"pcie_d2h\"\n  bandwidth { value: \"25 GB/s\"");
  text = replaced(text, "crosses: [\"hbm\", \"pcie_d2h\", \"host_dram\"]\n  latency { value: \"20 us\"",
                  "crosses: [\"hbm\", \"pcie_d2h\", \"uplink\", \"host_dram\"]\n  latency { value: \"0 us\"");
  write_content(scratch / "one-socket.textproto", replaced(text, "name: \"host-emulation\"", "name: \"one-socket\""));
  return load_machine((scratch / "one-socket.textproto").string());
}

Op offload(Bytes bytes, double alone) {
  Op op;
  op.kind = OpKind::copy;
  op.from = 0;
  op.to = 1;
  op.bytes = bytes;
  op.duration = from_seconds(bytes / alone);
  op.added = true;
  return op;
}

double offload_seconds(unsigned ranks, const Machine& machine) {
  const double alone = to_seconds(make_pricer(machine)->copy("hbm", "host", 1'000'000'000, false));
  return to_seconds(contended_end(offload(1'000'000'000, 1e9 / alone), {"hbm", "host"}, ranks, machine));
}

// The same where one program stands for all ranks.
double folded_offload_seconds(std::uint32_t ranks, const Machine& machine) {
  TraceBuilder builder;
  builder.trace().knowledge.timing = true;
  builder.trace().ranks = ranks;
  builder.add_thread("main");
  builder.add_stream("copies", StreamRole::copy);
  for (const char* place : {"hbm", "host"}) builder.trace().place(place);
  const double alone = to_seconds(make_pricer(machine)->copy("hbm", "host", 1'000'000'000, false));
  builder.append(offload(1'000'000'000, 1e9 / alone));
  return to_seconds(simulate(std::move(builder).finish(), machine, {.allocator = "ideal"}).end);
}

TEST(Contention, EightRanksThatOffloadOnOneSocketTakeWhatTheNarrowestSharedLinkMakesOfIt) {
  constexpr double kBytes = 1e9, kNear = 1e-9;
  // DRAM carries more than all uplinks: two ranks get an uplink each half.
  EXPECT_NEAR(offload_seconds(1, one_socket(200e9)), kBytes / 25e9, kNear) << "alone: its own link";
  EXPECT_NEAR(offload_seconds(2, one_socket(200e9)), kBytes * 2 / 32e9, kNear) << "both behind one uplink";
  EXPECT_NEAR(offload_seconds(8, one_socket(200e9)), kBytes * 2 / 32e9, kNear);
  // DRAM of 100 GB/s, less than four uplinks: all eight share it equally.
  EXPECT_NEAR(offload_seconds(8, one_socket(100e9)), kBytes * 8 / 100e9, kNear);
  EXPECT_NEAR(offload_seconds(4, one_socket(100e9)), kBytes * 2 / 32e9, kNear) << "64 GB/s of two uplinks fit";
  EXPECT_NEAR(offload_seconds(8, one_socket(12e9)), kBytes * 8 / 12e9, kNear);
}

TEST(Contention, AProgramThatStandsForEightRanksTakesAsLongAsEightPrograms) {
  for (const double dram : {200e9, 100e9, 12e9})
    EXPECT_NEAR(folded_offload_seconds(8, one_socket(dram)), offload_seconds(8, one_socket(dram)), 1e-9) << dram;
}

TEST(Contention, AnOddRankHasAnUplinkToItself) {
  // Ranks 0 and 1 share, 2 does not: it is done first, and the end is that of the two.
  EXPECT_NEAR(offload_seconds(3, one_socket(200e9)), 1e9 * 2 / 32e9, 1e-9);
  // With 50 GB/s of DRAM: all want more than a third, so each has a third.
  EXPECT_NEAR(offload_seconds(3, one_socket(48e9)), 1e9 * 3 / 48e9, 1e-9);
}

TEST(Contention, EightOptimizersOfOneSocketShareItsDram) {
  Op op;
  op.kind = OpKind::host_work;
  op.bytes = 2'000'000'000;
  op.added = true;
  const auto of_one_thread = [](Machine machine) {
    machine.host.cores = 8;
    machine.host.optimizer_threads = 1;
    return machine;
  };
  for (const auto& [alone, expected] : {std::pair(30e9, 2e9 * 8 / 100e9), std::pair(10e9, 2e9 / 10e9)}) {
    op.duration = from_seconds(2e9 / alone);
    EXPECT_NEAR(to_seconds(contended_end(op, {"host"}, 8, of_one_thread(one_socket(100e9)))), expected, 1e-9) << alone;
  }
}

// --- rows ---

Measurement total_row(const std::string& benchmark, unsigned processes, double bytes_each, double seconds,
                      std::map<std::string, std::string> parameters = {}) {
  Measurement m;
  m.benchmark = benchmark;
  m.parameters = std::move(parameters);
  m.parameters["bytes"] = std::to_string(static_cast<long long>(bytes_each));
  m.parameters["processes"] = std::to_string(processes);
  m.parameters["measured"] = "all";
  m.bytes = processes * bytes_each;
  m.median = seconds;
  m.low = 0.95 * seconds;
  m.high = 1.05 * seconds;
  m.samples = 5;
  return m;
}

TEST(Contention, OptimizersArePredictedFromOneAlone) {
  // One thread reaches 10 GB/s, all cores 16.
  MeasurementSet set;
  const auto adam = [&](unsigned processes, int threads, double rate) {
    set.measurements.push_back(total_row("adam_host_processes", processes, 1e9, processes * 1e9 / rate,
                                         {{"threads", std::to_string(threads)}}));
  };
  adam(1, 1, 10e9);
  adam(1, 2, 16e9);
  adam(2, 1, 15.5e9);
  adam(8, 2, 12e9);
  adam(4, 3, 12e9);  // no counterpart
  Measurement each = set.measurements[2];
  each.parameters["measured"] = "each";
  set.measurements.push_back(each);
  const Machine machine = host_like_machine();
  const auto rates = contended_rates(set, machine, machine);
  ASSERT_EQ(rates.size(), 2u);
  EXPECT_EQ(rates[0].processes, 2u);
  EXPECT_EQ(rates[0].parameters, "threads=1");
  EXPECT_NEAR(rates[0].alone, 10e9, 1);
  EXPECT_NEAR(rates[0].predicted, 16e9, 16) << "20 GB/s are more than the memory has";
  EXPECT_NEAR(rates[0].spread, 0.1, 1e-9);
  EXPECT_NEAR(rates[1].predicted, 16e9, 16);
  const auto rows = contention_rows(rates, "host");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].status, ValidationStatus::within);
  EXPECT_EQ(rows[1].status, ValidationStatus::outside) << "16 predicted, 12 measured";
  EXPECT_EQ(rows[1].metric, "8 processes, threads=2");
}

// Medians of `memwall-bench --backend none --filter adam_host_processes --filter memcpy_host_host_processes` on two
// cores of an Intel Xeon (a virtual machine, 28 November 2026, `nice -n -20` beside some twenty other processes, whose
// traffic left a tenth of the memory's rate): what one process reaches alone says within 15 % what up to eight reach
// together.
TEST(Contention, EightProcessesOfThisComputerAreWithinFifteenPercentOfWhatOneSays) {
  constexpr double kCopied = 268'435'456, kStepped = 939'524'096;  // bytes of one process
  MeasurementSet set;
  const auto row = [&](const char* benchmark, double bytes, unsigned processes, const char* threads, double seconds) {
    set.measurements.push_back(total_row(benchmark, processes, bytes, seconds, {{"threads", threads}}));
  };
  for (const auto& [processes, threads, seconds] :
       {std::tuple(1u, "1", 0.113927), std::tuple(2u, "1", 0.214754), std::tuple(4u, "1", 0.385075),
        std::tuple(8u, "1", 0.755283), std::tuple(1u, "2", 0.108397)})
    row("memcpy_host_host_processes", kCopied, processes, threads, seconds);
  for (const auto& [processes, threads, seconds] :
       {std::tuple(1u, "1", 0.165069), std::tuple(1u, "2", 0.150665), std::tuple(2u, "1", 0.320338),
        std::tuple(2u, "2", 0.305940), std::tuple(4u, "1", 0.625353), std::tuple(4u, "2", 0.579972),
        std::tuple(8u, "1", 1.288987), std::tuple(8u, "2", 1.177501)})
    row("adam_host_processes", kStepped, processes, threads, seconds);
  const Machine machine = host_like_machine();
  const auto rates = contended_rates(set, machine, machine);
  ASSERT_EQ(rates.size(), 9u);
  for (const ContendedRate& rate : rates)
    EXPECT_NEAR(rate.predicted / rate.measured, 1, 0.15)
        << rate.benchmark << ", " << rate.processes << " processes, " << rate.parameters;
}

TEST(Contention, FewProcessesThatDoNotFillTheMemoryDoNotWait) {
  MeasurementSet set;
  for (const auto& [processes, threads, rate] :
       {std::tuple(1, 1, 3e9), std::tuple(1, 8, 16e9), std::tuple(4, 1, 12e9), std::tuple(8, 1, 16e9)})
    set.measurements.push_back(total_row("memcpy_host_host_processes", static_cast<unsigned>(processes), 1e9,
                                         processes * 1e9 / rate, {{"threads", std::to_string(threads)}}));
  const Machine machine = host_like_machine();
  const auto rates = contended_rates(set, machine, machine);
  ASSERT_EQ(rates.size(), 2u);
  EXPECT_NEAR(rates[0].predicted, 12e9, 12);
  EXPECT_NEAR(rates[1].predicted, 16e9, 16) << "not 24";
  // Half of the DRAM is seen.
  Machine half = machine;
  half.links[half.dram_link].bandwidth /= 2;
  EXPECT_NEAR(contended_rates(set, half, machine)[0].predicted, 8e9, 8);
}

TEST(Contention, CopiesTakeWhatTheMachineFileSaysAndShareTheGpusLinks) {
  const Machine machine = host_like_machine();
  const double link = machine.links[static_cast<std::size_t>(machine.link("pcie_h2d"))].bandwidth;
  const double dram = machine.links[machine.dram_link].bandwidth;
  const auto predicted = [&](unsigned processes, std::map<std::string, std::string> parameters) {
    MeasurementSet set;
    set.measurements.push_back(total_row("copy_host_hbm_processes", processes, 1e9, 1, std::move(parameters)));
    const auto rates = contended_rates(set, machine, machine);
    return rates.size() == 1 ? rates[0].predicted : 0;
  };
  const double alone = 1e9 / to_seconds(make_pricer(machine)->copy("host", "hbm", 1'000'000'000, false));
  EXPECT_NEAR(predicted(8, {}) / (8 * alone), 1, 1e-9) << "each has an arena of its own";
  EXPECT_NEAR(predicted(64, {}) / dram, 1, 1e-3) << "until the DRAM is full";
  EXPECT_NEAR(predicted(8, {{"gpus", "1"}}) / link, 1, 1e-3) << "all on one GPU";
  EXPECT_NEAR(predicted(8, {{"gpus", "4"}}) / (4 * link), 1, 1e-3);
  EXPECT_EQ(predicted(1, {}), 0) << "one alone is no contention";
}

TEST(Contention, NonsenseInAFileIsLeftOut) {
  MeasurementSet set;
  set.measurements.push_back(total_row("copy_host_hbm_processes", 2, 1e9, 0));
  set.measurements.push_back(total_row("copy_host_hbm_processes", 2, 0, 1));
  set.measurements.push_back(total_row("copy_host_hbm_processes", 2, 1e9, 1));
  set.measurements.back().parameters["processes"] = "many";
  set.measurements.push_back(total_row("copy_host_hbm_processes", 2, 1e9, 1));
  set.measurements.back().parameters["processes"] = "4000000000";
  set.measurements.push_back(total_row("adam_host_processes", 2, 1e9, 1));
  set.measurements.back().status = MeasurementStatus::failed;
  const Machine machine = host_like_machine();
  EXPECT_TRUE(contended_rates(set, machine, machine).empty());
}

TEST(Contention, AFolderOfMeasurementsIsJudgedByIt) {
  const ScratchFolder scratch;
  const auto folder = make_validation_folder(scratch / "known", 1);
  MeasurementSet set = read_results(folder);
  for (const auto& [processes, rate] : {std::pair(1u, 10e9), std::pair(2u, 10e9), std::pair(8u, 5e9)})
    set.measurements.push_back(
        total_row("adam_host_processes", processes, 1e9, processes * 1e9 / rate, {{"threads", "1"}}));
  write_results(set, folder);
  std::vector<ValidationRow> rows = validate_folder(folder, {});
  std::erase_if(rows, [](const ValidationRow& row) { return row.rung != "contention"; });
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].status, ValidationStatus::within);
  EXPECT_EQ(rows[1].status, ValidationStatus::outside);
  EXPECT_EQ(rows[0].machine, "known");
  EXPECT_EQ(rows[0].date.substr(0, 10), "2026-11-21");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
