// Does calibration find a machine's laws again in what that machine would have measured, with and without
// noise? What it refuses is in calibrate_refusals_test.cpp.
#include "validate/calibrate/calibrate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "models/hw/machine_file.h"
#include "sim/error.h"
#include "tests/support/known_measurements.h"
#include "tests/support/scratch_folder.h"
#include "validate/calibrate/fitting.h"
#include "validate/calibrate/transfer_time_model.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

double relative(double found, double expected) { return std::abs(found - expected) / std::abs(expected); }

Machine loaded(const Calibration& calibration) { return parse_machine(calibration.text, "calibrated"); }

std::map<std::string, MachineNumber> numbers_of(const Calibration& calibration) {
  const ScratchFolder folder;
  write_content(folder / "mine.textproto", calibration.text);
  std::map<std::string, MachineNumber> numbers;
  for (const MachineNumber& n : machine_numbers((folder / "mine.textproto").string())) numbers[n.path] = n;
  return numbers;
}

double bandwidth(const Machine& m, const std::string& link) {
  return m.links[static_cast<std::size_t>(m.link(link))].bandwidth;
}

void expect_same_copies(const Machine& found, const Machine& known, double tolerance) {
  const auto a = make_pricer(found), b = make_pricer(known);
  const std::tuple<const char*, const char*, bool> routes[] = {
      {"host", "hbm", false}, {"hbm", "host", false},  {"host", "hbm", true},  {"hbm", "host", true},
      {"hbm", "hbm", false},  {"nvme", "host", false}, {"host", "nvme", false}};
  for (const auto& [from, to, pageable] : routes)
    for (Bytes bytes = KiB(4); bytes <= GiB(4); bytes *= 2)
      EXPECT_LE(
          relative(to_seconds(a->copy(from, to, bytes, pageable)), to_seconds(b->copy(from, to, bytes, pageable))),
          tolerance)
          << from << " " << to << " " << pageable << " " << bytes;
}

void expect_same_kernels(const Machine& found, const Machine& known, double tolerance) {
  for (const OperatorClass c : {OperatorClass::elementwise, OperatorClass::normalization, OperatorClass::reduction,
                                OperatorClass::optimizer, OperatorClass::memory})
    for (Bytes bytes = KiB(64); bytes <= GiB(4); bytes *= 2) {
      Op op;
      op.kind = OpKind::kernel;
      op.operator_class = c;
      op.bytes = bytes;
      EXPECT_LE(relative(to_seconds(kernel_duration(found, op)), to_seconds(kernel_duration(known, op))), tolerance)
          << to_string(c) << " " << bytes;
    }
}

class Inverse : public ::testing::TestWithParam<std::tuple<const char*, double>> {
 protected:
  std::string name() const { return std::get<0>(GetParam()); }
  double noise() const { return std::get<1>(GetParam()); }
  // A median of a few rows with this noise is within it; what is a difference of two, within some more.
  double tolerance(double exact) const { return std::max(exact, 2 * noise()); }
};

TEST_P(Inverse, TheLawsAreFoundAgain) {
  const Machine known = load_machine(name());
  KnownMeasurements measured(known, noise(), 1);
  measured.everything();
  measured.both_ways(0.75, 0.85);
  const Calibration calibration = calibrate(measured.set, {});
  const Machine found = loaded(calibration);

  expect_same_copies(found, known, tolerance(0.012));
  expect_same_kernels(found, known, tolerance(0.03));
  for (const char* link : {"pcie_h2d", "pcie_d2h", "nvme_read", "nvme_write", "host_dram"})
    EXPECT_LE(relative(bandwidth(found, link), bandwidth(known, link)), tolerance(0.005)) << link;
  EXPECT_LE(relative(found.host.optimizer_bandwidth, known.host.optimizer_bandwidth), tolerance(0.001));
  const std::pair<Duration, Duration> calls[] = {{found.host.launch, known.host.launch},
                                                 {found.host.launch_latency, known.host.launch_latency},
                                                 {found.host.stream_gap, known.host.stream_gap},
                                                 {found.host.copy_call, known.host.copy_call},
                                                 {found.host.event_call, known.host.event_call},
                                                 {found.host.allocator_call, known.host.allocator_call},
                                                 {found.host.device_malloc, known.host.device_malloc},
                                                 {found.host.device_free, known.host.device_free},
                                                 {found.host.synchronize_return, known.host.synchronize_return}};
  for (const auto& [a, b] : calls) EXPECT_LE(relative(to_seconds(a), to_seconds(b)), noise() + 1e-3);
  EXPECT_EQ(found.tiers.front().capacity, known.tiers.front().capacity);
  EXPECT_EQ(found.gpu.name, known.gpu.name);
}

TEST_P(Inverse, MatrixProductsAreFoundAgain) {
  const Machine known = load_machine(name());
  KnownMeasurements measured(known, noise(), 2);
  measured.everything();
  const Machine found = loaded(calibrate(measured.set, {}));
  const DataType type = known.gpu.compute_major == 0 ? DataType::fp32 : DataType::bf16;
  for (const double flops : {1e9, 1e12, 1e13}) {
    Op op;
    op.kind = OpKind::kernel;
    op.operator_class = OperatorClass::gemm;
    op.data_type = type;
    op.flops = flops;
    EXPECT_LE(relative(to_seconds(kernel_duration(found, op)), to_seconds(kernel_duration(known, op))), tolerance(0.02))
        << flops;
  }
}

TEST_P(Inverse, ResidualsAreSmallAndTheirRowsCounted) {
  const Machine known = load_machine(name());
  KnownMeasurements measured(known, noise(), 3);
  measured.everything();
  const Calibration calibration = calibrate(measured.set, {});
  EXPECT_GT(calibration.residuals.size(), 30u);
  for (const Residual& r : calibration.residuals) {
    EXPECT_LE(r.median, tolerance(0.02)) << r.path << " from " << r.measurements;
    EXPECT_LE(r.median, r.worst) << r.path;
    EXPECT_GT(r.rows, 0u) << r.path;
    EXPECT_FALSE(r.measurements.empty()) << r.path;
  }
}

// What the engine makes of two opposite copies on the calibrated machine is what was measured.
TEST_P(Inverse, OppositeCopiesTakeWhatTheyTook) {
  const Machine known = load_machine(name());
  for (const auto& [forward, backward] : {std::pair{0.75, 0.85}, {0.55, 0.95}, {0.9, 0.5}, {1.0, 1.0}}) {
    KnownMeasurements measured(known, noise(), 4);
    measured.everything();
    measured.both_ways(forward, backward);
    const Machine found = loaded(calibrate(measured.set, {}));
    const auto pricer = make_pricer(found);
    for (const Bytes bytes : {MiB(32), MiB(256)}) {
      const auto size = static_cast<double>(bytes);
      EXPECT_LE(
          relative(duplex_copy_seconds(found, *pricer, size, true), size / (forward * bandwidth(known, "pcie_h2d"))),
          tolerance(0.01))
          << forward << " " << backward;
      EXPECT_LE(
          relative(duplex_copy_seconds(found, *pricer, size, false), size / (backward * bandwidth(known, "pcie_d2h"))),
          tolerance(0.01))
          << forward << " " << backward;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Machines, Inverse,
                         ::testing::Combine(::testing::Values("h100-sxm-80gb", "host-emulation"),
                                            ::testing::Values(0.0, 0.02)),
                         [](const auto& parameters) {
                           std::string name = std::get<0>(parameters.param);
                           std::erase(name, '-');
                           return name + (std::get<1>(parameters.param) > 0 ? "_noisy" : "_exact");
                         });

TEST(Calibrate, ACollectivesFabricIsFoundAgain) {
  const Machine known = load_machine("h100-sxm-80gb");
  KnownMeasurements measured(known, 0, 1);
  measured.obligatory();
  measured.collectives(8);
  const Machine found = loaded(calibrate(measured.set, {}));
  const auto a = make_pricer(found), b = make_pricer(known);
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::all_reduce})
    for (Bytes bytes = MiB(1); bytes <= GiB(4); bytes *= 4)
      EXPECT_LE(relative(to_seconds(a->collective(kind, bytes, 8)), to_seconds(b->collective(kind, bytes, 8))), 0.03)
          << to_string(kind) << " " << bytes;
}

// A curve that the law needs: half the rate up to 1 MiB, rising to all of it at 64 MiB.
TEST(TransferTimeModel, ACurveIsFoundAndNeedlessPointsAreDropped) {
  const TransferTimeModel known{10e-6, 20e9, {{1 << 20, 0.5}, {1 << 26, 1.0}}};
  std::vector<SizedTime> times;
  for (double bytes = 4096; bytes <= 1 << 30; bytes *= 2) times.push_back({bytes, known.seconds(bytes)});
  const TransferTimeModel found = fit_transfer_time(times, false);
  EXPECT_LE(relative(found.bandwidth, 20e9), 0.001);
  for (double bytes = 4096; bytes <= 4.0 * (1 << 30); bytes *= 1.7)
    EXPECT_LE(relative(found.seconds(bytes), known.seconds(bytes)), 0.015) << bytes;
  EXPECT_LE(found.efficiency.size(), 8u) << "of 19 sizes";
  for (std::size_t i = 1; i < found.efficiency.size(); ++i)
    EXPECT_GE(found.efficiency[i].second, found.efficiency[i - 1].second);
}

TEST(TransferTimeModel, AStraightLineNeedsNoCurve) {
  std::vector<SizedTime> times;
  for (double bytes = 4096; bytes <= 1 << 28; bytes *= 4) times.push_back({bytes, 3e-6 + bytes / 25e9});
  const TransferTimeModel found = fit_transfer_time(times, false);
  EXPECT_LE(relative(found.bandwidth, 25e9), 1e-6);
  EXPECT_LE(relative(found.latency, 3e-6), 1e-6);
  EXPECT_TRUE(found.efficiency.empty());
}

// Beyond a cache a copy is slower again: no curve that only rises explains that.
TEST(TransferTimeModel, AMiddleSizeMayBeTheFastest) {
  const TransferTimeModel known{10e-6, 12e9, {{1 << 16, 0.4}, {1 << 20, 1.0}, {1 << 23, 1.0}, {1 << 25, 0.6}}};
  std::vector<SizedTime> times;
  for (double bytes = 4096; bytes <= 1 << 30; bytes *= 2) times.push_back({bytes, known.seconds(bytes)});
  const TransferTimeModel found = fit_transfer_time(times, false);
  for (const SizedTime& t : times) EXPECT_LE(relative(found.seconds(t.bytes), t.seconds), 0.03) << t.bytes;
  EXPECT_LE(relative(found.bandwidth, 12e9), 0.05);
}

TEST(TransferTimeModel, OneSlowSizeMovesLittle) {
  std::vector<SizedTime> times;
  for (double bytes = 4096; bytes <= 1 << 28; bytes *= 4) times.push_back({bytes, 3e-6 + bytes / 25e9});
  times.front().seconds *= 3;
  times.back().seconds *= 1.5;
  const TransferTimeModel found = fit_transfer_time(times, false);
  EXPECT_LE(relative(found.bandwidth, 25e9), 0.02);
  EXPECT_LE(relative(found.latency, 3e-6), 0.2);
}

// --- what the file says ---

TEST(Calibrate, EveryNumberHasAUnitAndSaysWhereItComesFrom) {
  KnownMeasurements measured(load_machine("h100-sxm-80gb"), 0.01, 5);
  measured.everything();
  measured.both_ways(0.75, 0.85);
  const Calibration calibration = calibrate(measured.set, {"my-h100", ""});
  const auto numbers = numbers_of(calibration);
  const std::string& h2d = numbers.at("link.pcie_h2d.bandwidth").source;
  EXPECT_TRUE(
      h2d.starts_with("measured 2026-11-21: copy_host_hbm_pinned, 9 sizes from 4 KiB to 256 MiB, median "
                      "residual "))
      << h2d;
  EXPECT_TRUE(numbers.at("gpu.peak.bf16.rate").source.starts_with("not measured; as in h100-sxm-80gb: NVIDIA H100"));
  EXPECT_EQ(numbers.at("gpu.peak.bf16.rate").value, "989.4 TFLOP/s") << "of a GPU the peak is the data sheet's";
  EXPECT_TRUE(numbers.at("gpu.hbm.capacity").source.starts_with("measured 2026-11-21: gpu.memory_bytes"));
  std::size_t fresh = 0;
  for (const auto& [path, n] : numbers) {
    const bool told = n.source.starts_with("measured 2026-11-21: ") || n.source.starts_with("not measured; ");
    EXPECT_TRUE(told) << path << ": " << n.source;
    fresh += n.source.starts_with("measured");
  }
  EXPECT_GT(fresh, 40u);
  EXPECT_EQ(loaded(calibration).name, "my-h100");
  for (const Residual& r : calibration.residuals)
    if (numbers.contains(r.path)) {
      EXPECT_EQ(numbers.at(r.path).value, r.value) << r.path;
    }
}

TEST(Calibrate, TheSameRowsGiveTheSameBytes) {
  KnownMeasurements measured(load_machine("host-emulation"), 0.05, 6);
  measured.everything();
  EXPECT_EQ(calibrate(measured.set, {}).text, calibrate(measured.set, {}).text);
}

TEST(Calibrate, ACalibratedFileIsABaseForTheNext) {
  KnownMeasurements measured(load_machine("h100-sxm-80gb"), 0, 7);
  measured.everything();
  const ScratchFolder folder;
  const Calibration first = calibrate(measured.set, {"first", ""});
  write_content(folder / "first.textproto", first.text);
  KnownMeasurements again(parse_machine(first.text, "first"), 0, 7);
  again.everything();
  const Calibration second = calibrate(again.set, {"second", (folder / "first.textproto").string()});
  expect_same_copies(loaded(second), loaded(first), 0.015);
  expect_same_kernels(loaded(second), loaded(first), 0.03);
}

TEST(Calibrate, ADisprovedBaseGivesWay) {
  // Copies faster than the base's DRAM, which nobody measured here, but not than its HBM.
  Machine fast = load_machine("h100-sxm-80gb");
  for (Route& route : fast.routes) route.bandwidth = 600e9;
  KnownMeasurements measured(fast, 0, 8);
  measured.obligatory();
  const Calibration calibration = calibrate(measured.set, {});
  EXPECT_LE(relative(bandwidth(loaded(calibration), "host_dram"), 600e9), 0.01);
  bool noted = false;
  for (const std::string& note : calibration.notes)
    noted = noted || note.starts_with("host.dram.bandwidth is taken as 600");
  EXPECT_TRUE(noted);
}

TEST(Calibrate, AnUnknownGpuTakesTheNearestBaseAndItsOwnPeak) {
  KnownMeasurements measured(load_machine("a100-sxm-40gb"), 0, 9);
  measured.obligatory();
  measured.set.environment[1].second = "Accelerator of Tomorrow";
  measured.set.environment.emplace_back("gpu.compute_capability", "12.3");
  const Calibration calibration = calibrate(measured.set, {});
  const Machine found = loaded(calibration);
  EXPECT_EQ(found.gpu.name, "Accelerator of Tomorrow");
  EXPECT_EQ(found.name, "accelerator-of-tomorrow");
  EXPECT_EQ(found.gpu.compute_major, 12);
  EXPECT_NE(calibration.notes.front().find("h100-sxm-80gb"), std::string::npos) << calibration.notes.front();
  Op op;
  op.kind = OpKind::kernel;
  op.operator_class = OperatorClass::gemm;
  op.data_type = DataType::bf16;
  op.flops = 1e12;
  EXPECT_LE(
      relative(to_seconds(kernel_duration(found, op)), to_seconds(kernel_duration(load_machine("a100-sxm-40gb"), op))),
      0.03);
}

TEST(Calibrate, TheDieIsKnownByItsCapability) {
  KnownMeasurements measured(load_machine("a100-sxm-40gb"), 0, 9);
  measured.obligatory();
  measured.set.environment[1].second = "A100 of another name";
  measured.set.environment.emplace_back("gpu.compute_capability", "8.0");
  const Calibration calibration = calibrate(measured.set, {});
  EXPECT_NE(calibration.notes.front().find("a100"), std::string::npos) << calibration.notes.front();
  EXPECT_EQ(numbers_of(calibration).at("gpu.peak.bf16.rate").value, "312 TFLOP/s");
}

TEST(Calibrate, FailedRowsAreListedAndNotUsed) {
  KnownMeasurements measured(load_machine("h100-sxm-80gb"), 0, 10);
  measured.obligatory();
  const std::string before = calibrate(measured.set, {}).text;
  Measurement& wrong = measured.add("copy_host_hbm_pinned", {{"bytes", "4096"}}, 5);
  wrong.status = MeasurementStatus::failed;
  wrong.note = "byte 17 is wrong";
  const Calibration calibration = calibrate(measured.set, {});
  EXPECT_EQ(calibration.text, before);
  bool listed = false;
  for (const std::string& note : calibration.notes)
    listed = listed || note == "copy_host_hbm_pinned (bytes=4096) failed and is not used: byte 17 is wrong.";
  EXPECT_TRUE(listed);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
