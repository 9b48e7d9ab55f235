// Nothing is faster than the hardware: over all samples, on several machines. What was measured faster than a machine's
// file says is told by a sentence; what memwall models never is.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "models/hw/roofline.h"
#include "study/study.h"
#include "tests/support/program.h"
#include "tests/support/shared_data.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

namespace fs = std::filesystem;

std::vector<std::string> samples() {
  std::vector<std::string> paths{MEMWALL_SOURCE "/traces/samples/gpt_124m.mwt"};
  for (const auto& entry : fs::directory_iterator(MEMWALL_SOURCE "/traces/samples/captures"))
    if (entry.path().string().ends_with(".mwc.gz")) paths.push_back(entry.path().string());
  return paths;
}

double highest_share(const Roofline& r) {
  double highest = 0;
  for (const RooflineOperator& o : r.operators) highest = std::max(highest, o.share_of_roof());
  return highest;
}

TEST(Roofs, HoldForWhatIsModelled) {
  for (const char* machine : {"a100-sxm-40gb", "h100-sxm-80gb", "b200-sxm-180gb", "t4", "mi300x"}) {
    Study study;
    for (const std::string& sample : samples()) {
      const Scenario scenario{.step = {sample}, .machine = machine};
      const PreparedStep step = study.prepare(scenario);
      EXPECT_LE(highest_share(roofline(step.trace, *step.machine)), 1 + 1e-6) << sample << " on " << machine;
      const memwall::Run run = study.run(scenario, {.record = true}).run;
      for (std::size_t link = 0; link < run.link_rates.size(); ++link)
        for (const RatePoint& point : run.link_rates[link])
          ASSERT_LE(point.bytes_per_second, run.machine.links[link].bandwidth * (1 + 1e-6))
              << sample << " on " << machine << ", " << run.machine.links[link].name;
    }
  }
}

// Convolutions of tensors of fp32 run in TF32 by default: the kernels' names say so.
TEST(Roofs, HoldForConvolutionsInTf32) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "MEMWALL_SHARED is absent";
  const fs::path capture = *data / "traces/kineto/vgg13_h100_bs512_train.json";
  Study study;
  const PreparedStep step = study.prepare({.step = {capture.string()}});
  const Roofline r = roofline(step.trace, *step.machine);
  EXPECT_LE(highest_share(r), 1 + 1e-6);
  for (const RooflineOperator& o : r.operators)
    if (o.name == "aten::cudnn_convolution") {
      EXPECT_EQ(o.data_type, DataType::tf32);
    }
}

// What no machine but the V100 ever ran is no faster than they could run it.
TEST(Roofs, HoldForWhatIsTransferred) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "MEMWALL_SHARED is absent";
  const fs::path capture = *data / "traces/kineto/resnet50_v100_bs32_2021.json.gz";
  for (const char* machine : {"h100-sxm-80gb", "b200-sxm-180gb", "a100-sxm-40gb"}) {
    Study study;
    const PreparedStep step = study.prepare({.step = {capture.string()}, .machine = machine});
    EXPECT_LE(highest_share(roofline(step.trace, *step.machine)), 1 + 1e-6) << machine;
  }
}

TEST(Roofs, AreExceededForAReasonThatIsTrue) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "MEMWALL_SHARED is absent";
  const std::string capture = "roofline '" + (*data / "traces/triosim/resnet50_h100_bs128/trace.csv").string() + "' ";
  const ScratchFolder folder;
  const auto says = [&](const std::string& arguments, const std::string& part) {
    const CommandOutcome o = run_memwall(folder, capture + arguments + " --format json");
    EXPECT_EQ(o.code, 0) << o.err;
    return o.out.find(part) != std::string::npos;
  };
  const std::string stranger = "The capture does not say which GPU it was measured on, so its times are taken as t4's",
                    elsewhere = "Nothing ran on this machine: its time is a transfer",
                    here = "It took less time than its FLOPs allow on this machine: it needed fewer operations";
  EXPECT_TRUE(says("--machine t4", stranger));
  EXPECT_FALSE(says("--machine t4", elsewhere));
  EXPECT_TRUE(says("--machine t4 --measured-on h100-sxm-80gb", elsewhere));
  EXPECT_FALSE(says("--machine t4 --measured-on h100-sxm-80gb", stranger));
  EXPECT_TRUE(says("--measured-on h100-sxm-80gb", here));
}

TEST(Roofs, AreToldAboutWhereMeasurementsExceedThem) {
  const auto data = shared_data();
  if (!data) GTEST_SKIP() << "MEMWALL_SHARED is absent";
  const fs::path capture = *data / "traces/kineto/resnet50_v100_bs32_2021.json.gz";
  const ScratchFolder folder;
  const CommandOutcome o = run_memwall(folder, "roofline '" + capture.string() + "'");
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_NE(o.out.find("Above 100 % of the roof"), std::string::npos);
  EXPECT_NE(o.out.find("of the bandwidth that the machine file has"), std::string::npos);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
