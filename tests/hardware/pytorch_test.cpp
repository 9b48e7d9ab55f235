// Are variants predicted from their baseline's capture, compared with the right figures, and judged by the aims?
#include <gtest/gtest.h>

#include <algorithm>

#include "models/hw/machine_file.h"
#include "sim/error.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shared_data.h"
#include "validate/report/pytorch.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr const char* kHeader =
    "model,variant,kernels,batch,status,step_seconds,step_low,step_high,steps,forward_seconds,backward_seconds,"
    "optimizer_seconds,peak_allocated,peak_reserved,samples,date,gpu,driver,torch,cuda,note\n";

std::string measured_line(const std::string& model, const std::string& variant, double step, Bytes peak) {
  return model + "," + variant + ",same,4,measured," + std::to_string(step) + ",0.1,0.2,9,0.1,0.1,0.01," +
         std::to_string(peak) + "," + std::to_string(peak) + ",4,2026-01-02,GPU,1,2,3,\n";
}

PytorchComparison comparison(const std::string& variant, double measured, double predicted, bool same = true) {
  PytorchComparison c;
  c.measured.model = "m";
  c.measured.variant = variant;
  c.measured.same_kernels = same;
  c.measured.status = "measured";
  c.measured.step = measured;
  c.measured.peak_allocated = 100;
  c.predicted.step = predicted;
  c.predicted.peak_allocated = 101;
  return c;
}

const ValidationRow& row(const std::vector<ValidationRow>& rows, const std::string& rung, const std::string& metric) {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const ValidationRow& r) {
    return r.rung == rung && r.metric.starts_with(metric) && r.case_name.starts_with("all");
  });
  EXPECT_NE(found, rows.end()) << rung << " " << metric;
  return *found;
}

TEST(PytorchRows, NothingMeasuredIsSaidAndNeverANumber) {
  for (const ValidationRow& r : pytorch_rows("h200", {})) {
    EXPECT_EQ(r.status, ValidationStatus::not_measured) << r.metric;
    EXPECT_EQ(r.measured, 0);
    EXPECT_EQ(r.predicted, 0);
  }
  EXPECT_EQ(pytorch_rows("h200", {}).size(), 5u);
}

TEST(PytorchRows, AimsAreJudgedByMedianAndPercentile) {
  // Errors 0, 2 %, 8 %, 30 %: the median (2 %) is within 5 %, the 90th percentile is not within 10 %.
  const auto rows = pytorch_rows("gpu", {comparison("baseline", 1, 1), comparison("a", 2, 2.04),
                                         comparison("b", 3, 3.24), comparison("c", 4, 5.2)});
  EXPECT_EQ(row(rows, "pytorch same kernels", "step time, median").status, ValidationStatus::within);
  EXPECT_NEAR(row(rows, "pytorch same kernels", "step time, median").predicted, 0.02, 1e-9);
  EXPECT_EQ(row(rows, "pytorch same kernels", "step time, 90th").status, ValidationStatus::outside);
  EXPECT_EQ(row(rows, "pytorch same kernels", "peak").status, ValidationStatus::within);
  EXPECT_EQ(row(rows, "pytorch changed kernels", "step time").status, ValidationStatus::not_measured);
  EXPECT_EQ(row(rows, "pytorch same kernels", "order of variants").status, ValidationStatus::within);
}

TEST(PytorchRows, OnePairInTheWrongOrderShows) {
  const auto rows = pytorch_rows("gpu", {comparison("a", 1, 1.05), comparison("b", 1.04, 1.0)});
  EXPECT_EQ(row(rows, "pytorch same kernels", "order of variants").status, ValidationStatus::outside);
  // Within 2 % of each other, no order is wrong.
  const auto tie = pytorch_rows("gpu", {comparison("a", 1, 1.05), comparison("b", 1.01, 1.0)});
  EXPECT_EQ(row(tie, "pytorch same kernels", "order of variants").status, ValidationStatus::not_measured);
}

TEST(PytorchCases, AreReadAndRefusedByLine) {
  const ScratchFolder folder;
  const auto parsed = [&](const std::string& lines) {
    write_content(folder / "results.csv", kHeader + lines);
    return read_pytorch_cases(folder / "results.csv");
  };
  const auto cases =
      parsed(measured_line("m", "baseline", 0.25, 1000) + "m,compile,changed,4,failed,,,,,,,,,,,,,,,,why\n");
  ASSERT_EQ(cases.size(), 2u);
  EXPECT_EQ(cases[0].step, 0.25);
  EXPECT_EQ(cases[0].peak_allocated, 1000);
  const auto columns = parsed("m,a,same,4,measured,7,0.1,0.2,9,1,2,3,4,5,4,2026-01-02,GPU,1,2,3,\n");
  EXPECT_EQ(columns[0].step, 7);
  EXPECT_EQ(columns[0].forward, 1);
  EXPECT_EQ(columns[0].backward, 2);
  EXPECT_EQ(columns[0].optimizer, 3);
  EXPECT_EQ(columns[0].peak_allocated, 4);
  EXPECT_EQ(columns[0].peak_reserved, 5);
  EXPECT_EQ(columns[0].date, "2026-01-02");
  EXPECT_FALSE(cases[1].measured());
  EXPECT_FALSE(cases[1].same_kernels);
  for (const std::string& bad :
       {std::string("m,baseline,same,4,measured,,,,,,,,,,,,,,,,\n"),
        std::string("m,baseline,same,4,measured,-1,,,,,,,,,,,,,,,\n"),
        std::string("../m,baseline,same,4,failed,,,,,,,,,,,,,,,,\n"), std::string("m,baseline\n"),
        measured_line("m", "a", 1, 1) + measured_line("m", "a", 2, 1)})
    EXPECT_THROW(parsed(bad), InputError) << bad;
}

// A capture of VGG13 on an H100 stands in for a baseline; what is "measured" is made up from the prediction itself,
// so that the whole way from files to verdict is walked, and then one figure is altered.
TEST(PytorchFolder, FromCaptureToVerdict) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "MEMWALL_SHARED names no folder of captures";
  namespace fs = std::filesystem;
  const ScratchFolder scratch;
  const fs::path folder = scratch / "h100";
  fs::create_directories(folder / "pytorch" / "baseline");
  const fs::path traces = *data / "traces";
  fs::copy_file(traces / "kineto/vgg13_h100_bs512_train.json", folder / "pytorch/baseline/vgg.kineto.json.gz");
  fs::copy_file(traces / "execution_trace/vgg13_h100_bs512.json", folder / "pytorch/baseline/vgg.et.json.gz");
  fs::copy_file(fs::path(MEMWALL_SOURCE) / "models/hw/machines/h100-sxm-80gb.textproto", folder / "machine.textproto");
  const Machine machine = load_machine("h100-sxm-80gb");
  const Trace baseline = captured_baseline(folder / "pytorch" / "baseline", "vgg", machine);
  const PytorchPrediction base = predict(baseline, machine, *policies_of_variant("baseline"));
  const PytorchPrediction less = predict(baseline, machine, *policies_of_variant("checkpoint=full"));
  EXPECT_NEAR(base.step, 0.347, 0.02) << "the capture's GPU span";
  EXPECT_GT(less.step, base.step);
  const auto statuses = [&](double factor) {
    write_content(folder / "pytorch/results.csv",
                  kHeader + measured_line("vgg", "baseline", base.step * factor, base.peak_allocated) +
                      measured_line("vgg", "checkpoint=full", less.step * factor, less.peak_allocated) +
                      measured_line("vgg", "alloc=roundup_4", 1, 1));
    return validate_pytorch(folder, {});
  };
  const auto good = statuses(1.01);
  EXPECT_EQ(row(good, "pytorch same kernels", "step time, median").status, ValidationStatus::within);
  EXPECT_EQ(row(statuses(1.2), "pytorch same kernels", "step time, median").status, ValidationStatus::outside);
  EXPECT_TRUE(std::any_of(good.begin(), good.end(), [](const ValidationRow& r) {
    return r.metric.find("no policy stands for it yet") != std::string::npos && r.status == ValidationStatus::reported;
  }));
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
