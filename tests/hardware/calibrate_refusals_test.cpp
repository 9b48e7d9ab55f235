// Does calibration refuse, by row and figure, what no machine can have measured, and only that?
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "models/hw/machine_file.h"
#include "sim/error.h"
#include "tests/support/known_measurements.h"
#include "validate/calibrate/calibrate.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class Refusal : public ::testing::Test {
 protected:
  Refusal() : measured_(load_machine("h100-sxm-80gb"), 0, 11) {
    measured_.obligatory();
    measured_.calls();
    measured_.both_ways(0.75, 0.85);
  }
  Measurement& row(const std::string& benchmark, const std::string& bytes = "") {
    for (Measurement& m : measured_.set.measurements) {
      const auto found = m.parameters.find("bytes");
      if (m.benchmark == benchmark && (bytes.empty() || (found != m.parameters.end() && found->second == bytes)))
        return m;
    }
    throw std::logic_error("no such row");
  }
  void change(const std::string& benchmark, double factor) {
    for (Measurement& m : measured_.set.measurements) {
      if (m.benchmark != benchmark) continue;
      m.median *= factor;
      m.low *= factor;
      m.high *= factor;
    }
  }
  void drop(const std::string& benchmark) {
    std::erase_if(measured_.set.measurements, [&](const Measurement& m) { return m.benchmark == benchmark; });
  }
  void refuses(const std::string& part, const CalibrationSettings& settings = {}) {
    try {
      calibrate(measured_.set, settings);
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
      EXPECT_TRUE(std::string(error.what()).ends_with('.')) << error.what();
      return;
    }
    ADD_FAILURE() << "accepted, expected: " << part;
  }
  KnownMeasurements measured_;
};

TEST_F(Refusal, NothingIsWrongBefore) { EXPECT_NO_THROW(calibrate(measured_.set, {})); }

TEST_F(Refusal, TimesThatAreNoTimes) {
  for (const double bad : {0.0, -1e-6, std::nan(""), std::numeric_limits<double>::infinity()}) {
    row("copy_host_hbm_pinned", "65536").median = bad;
    refuses("copy_host_hbm_pinned (bytes=65536): its median is ");
  }
}

TEST_F(Refusal, ACallThatTookNoTime) {
  row("call_launch").median = 0;
  refuses("call_launch: its median is 0 s; expected a positive time");
}

TEST_F(Refusal, AnotherUnit) {
  row("call_launch").unit = "B";
  refuses("call_launch: its unit is \"B\"; expected \"s\"");
}

TEST_F(Refusal, ARowWithoutASize) {
  row("copy_hbm_host_pinned", "4096").parameters.clear();
  refuses("copy_hbm_host_pinned: it moves 0 bytes; expected a size");
}

TEST_F(Refusal, CopiesFasterThanBothMemories) {
  change("copy_host_hbm_pinned", 1e-3);
  refuses("copy_host_hbm_pinned: 55.4 TB/s are more than the memories on either side carry (2.657 TB/s)");
}

TEST_F(Refusal, CopiesFasterThanTheirWire) {
  measured_.set.environment.emplace_back("pcie.generation", "3");
  measured_.set.environment.emplace_back("pcie.width", "16");
  refuses("copy_host_hbm_pinned: 55.4 GB/s are more than twice the 15.76 GB/s of PCIe");
}

TEST_F(Refusal, ProductsAboveThePeak) {
  change("gemm_bf16", 0.5);
  refuses("are more than the peak of this GPU, 989.4 TFLOP/s");
}

TEST_F(Refusal, TimesThatFallAsSizesGrow) {
  Measurement& small = row("copy_hbm_host_pinned", "65536");
  small.median = small.low = small.high = 1e-3;
  refuses("copy_hbm_host_pinned (bytes=262144): 6.958 us are less than the 1 ms of copy_hbm_host_pinned (bytes=65536)");
}

TEST_F(Refusal, ButNotWhatIsNoise) {
  Measurement& small = row("copy_hbm_host_pinned", "16384");
  small.median *= 4;
  small.low = small.median / 5;
  EXPECT_NO_THROW(calibrate(measured_.set, {}));
}

TEST_F(Refusal, ADuplexRateAboveTheSingleOne) {
  change("copy_both_pinned", 0.5);
  refuses(
      "copy_both_pinned (bytes=67108864, direction=host_to_device): 83.1 GB/s beside opposite copies are more than "
      "the 55.4 GB/s of one copy alone");
}

TEST_F(Refusal, LatenciesOfASecond) {
  for (Measurement& m : measured_.set.measurements)
    if (m.benchmark == "copy_host_hbm_pinned") m.median += 1;
  refuses("copy_host_hbm_pinned: the latency would be 1 s; expected at most 10 ms");
}

TEST_F(Refusal, CallsOfASecond) {
  change("call_event", 1e6);
  refuses("call_event: 1.5 s are too long for a call; expected at most 10 ms");
}

TEST_F(Refusal, TooFewRows) {
  std::erase_if(measured_.set.measurements, [](const Measurement& m) {
    return m.benchmark == "copy_host_hbm_pinned" && m.number("bytes") > 20000;
  });
  refuses("copy_host_hbm_pinned has 2 measured sizes; 3 are needed");
}

TEST_F(Refusal, NoCopiesAtAll) {
  drop("copy_hbm_host_pinned");
  refuses("copy_hbm_host_pinned has 0 measured sizes; 3 are needed");
}

TEST_F(Refusal, NoMatrixProducts) {
  drop("gemm_bf16");
  refuses("have 0 measured rows; 1 is needed");
}

TEST_F(Refusal, NoMemoryBandwidth) {
  drop("hbm_triad");
  refuses("hbm_read, hbm_write and hbm_triad have 0 measured rows");
}

TEST_F(Refusal, KernelsFasterThanTheirMemory) {
  measured_.kernels("kernel_elementwise", OperatorClass::elementwise, "bytes");
  change("kernel_elementwise", 0.4);
  refuses("are more than the memory carries, 2.65");
}

TEST_F(Refusal, RanksThatAreNone) {
  measured_.add("nccl_all_gather", {{"bytes", "1048576"}, {"ranks", "1"}}, 1e-3);
  refuses("nccl_all_gather (bytes=1048576, ranks=1): 1 ranks; expected a whole number from 2 on");
}

TEST_F(Refusal, AContextLargerThanTheDevice) {
  measured_.add("context_bytes", {}, 1e12).unit = "B";
  refuses("context_bytes: ");
}

TEST_F(Refusal, AnUnknownBaseOrAStrangeName) {
  EXPECT_THROW(calibrate(measured_.set, {"", "h100-sxm-80g"}), UsageError);
  EXPECT_THROW(calibrate(measured_.set, {"a name", ""}), UsageError);
  EXPECT_THROW(calibrate(measured_.set, {"../x", ""}), UsageError);
}

// --- anything at all ---

double drawn(double least, double most) {
  const double share = *rc::gen::inRange(0, 10001) / 10000.0;
  return least * std::pow(most / least, share);
}

RC_GTEST_PROP(CalibrateProperty, AnySetIsRefusedInASentenceOrLoads, ()) {
  const bool host = *rc::gen::arbitrary<bool>();
  KnownMeasurements measured(load_machine(host ? "host-emulation" : "rtx-2080ti"), drawn(0.001, 0.3),
                             *rc::gen::arbitrary<std::uint64_t>());
  measured.everything();
  measured.both_ways(drawn(0.3, 1.05), drawn(0.3, 1.05));
  std::map<std::string, double> factors;
  for (Measurement& m : measured.set.measurements) {
    if (!factors.contains(m.benchmark)) factors[m.benchmark] = *rc::gen::inRange(0, 4) == 0 ? drawn(0.2, 5) : 1;
    const double factor = factors[m.benchmark];
    m.median *= factor;
    m.low *= factor;
    m.high *= factor;
    const int fate = *rc::gen::inRange(0, 400);
    if (fate == 0) m.status = MeasurementStatus::failed;
    if (fate == 1) m.status = MeasurementStatus::not_applicable;
    if (fate == 2) m.parameters.clear();
    if (fate == 3) m.median *= 1e9;
    if (fate == 4) m.median *= 1e-9;
  }
  try {
    const Calibration calibration = calibrate(measured.set, {});
    const Machine machine = parse_machine(calibration.text, "calibrated");
    RC_ASSERT(machine.tiers.size() >= 4u);
    for (const Residual& r : calibration.residuals) RC_ASSERT(std::isfinite(r.worst) && r.rows > 0);
  } catch (const InputError& error) {
    const std::string sentence = error.what();
    RC_ASSERT(sentence.size() > 30 && sentence.ends_with('.'));
    RC_ASSERT(sentence.find("the calibrated machine") == std::string::npos);
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
