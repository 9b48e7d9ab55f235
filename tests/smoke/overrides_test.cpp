// Does whatever a user changed stand in what he reads: headline, notes, stderr, JSON, run file, comparison, figures?
// And does what a step assumes travel from the generator to the last of them?
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/program.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::string kSample = std::string(MEMWALL_SOURCE) + "/traces/samples/gpt_124m.mwt";
const std::string kIdle = "link.pcie_h2d.bandwidth=50GB/s changes nothing";

class Overrides : public ::testing::Test {
 protected:
  std::string out(const std::string& arguments) {
    const CommandOutcome o = run_memwall(folder_, arguments);
    EXPECT_EQ(o.code, 0) << arguments << "\n" << o.err;
    err_ = o.err;
    return o.out;
  }
  static bool has(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }
  // Where lines end is the table's business.
  static std::string headline(std::string text) {
    text = text.substr(0, text.find("\n  step time"));
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
  }

  ScratchFolder folder_;
  std::string err_;
};

TEST_F(Overrides, AnIdleOneIsTheFirstNoteAndStandsOnStderr) {
  const std::string arguments =
      "run '" + kSample + "' --machine a100-sxm-80gb --set link.pcie_h2d.bandwidth=50GB/s --no-provenance";
  const std::string table = out(arguments);
  EXPECT_TRUE(has(err_, "memwall run: " + kIdle)) << err_;
  const std::size_t notes = table.find("\nNotes\n");
  ASSERT_NE(notes, table.npos);
  EXPECT_EQ(table.substr(notes + 7, 4 + kIdle.size()), "  - " + kIdle);
  const std::string json = out(arguments + " --format json");
  EXPECT_TRUE(has(json, "\"overrides\": [\n    \"link.pcie_h2d.bandwidth=50GB/s\"\n  ]")) << json.substr(0, 500);
  const std::size_t first = json.find("\"notes\": [\n    \"");
  ASSERT_NE(first, json.npos);
  EXPECT_EQ(json.substr(first + 16, kIdle.size()), kIdle);
}

TEST_F(Overrides, AnIdleOneIsToldByScheduleAndRoofline) {
  const std::string idle = " --set link.pcie_h2d.bandwidth=50GB/s";
  const std::string told = ": link.pcie_h2d.bandwidth=50GB/s changes nothing: ";
  out("schedule '" + kSample + "' --machine a100-sxm-80gb -o a.schedule" + idle);
  EXPECT_TRUE(has(err_, "memwall schedule" + told + "the schedule is the same without it.")) << err_;
  out("roofline '" + kSample + "' --machine a100-sxm-80gb" + idle);
  EXPECT_TRUE(has(err_, "memwall roofline" + told + "every figure is the same without it.")) << err_;
  out("roofline '" + kSample + "' --machine a100-sxm-80gb --set gpu.hbm.bandwidth=1TB/s");
  EXPECT_EQ(err_, "");
}

TEST_F(Overrides, AnIdleOneIsToldByTheSearchForABatchAndByValidate) {
  out("generate gpt2-124m --batch 2 --seq 128 --set layers=2 -o step.mwt");
  const std::string search = "run step.mwt --machine v100-sxm2-16gb --find-largest-batch";
  out(search + " --set link.pcie_h2d.bandwidth=50GB/s --set gpu.hbm.capacity=6GB");
  EXPECT_EQ(err_,
            "memwall run: link.pcie_h2d.bandwidth=50GB/s changes nothing: the result of the search is the same "
            "without it.\n");
  const std::string rows = std::string(MEMWALL_SOURCE) + "/validate/data/two-core-epyc";
  const auto errors = [&](const std::string& setting) {
    return run_memwall(folder_, "validate '" + rows + "' --set " + setting).err;
  };
  EXPECT_TRUE(has(errors("gpu.hbm.capacity=64GiB"),
                  "memwall validate: gpu.hbm.capacity=64GiB changes nothing: every row is the same without it."));
  EXPECT_FALSE(has(errors("gpu.hbm.bandwidth=1TB/s"), "changes nothing"));
}

TEST_F(Overrides, AnEffectiveOneIsInEveryHeadline) {
  const std::string policy = " --policy offload:what=activations,to=host";
  out("run '" + kSample + "' --machine a100-sxm-80gb --no-provenance -o base.h5" + policy);
  const std::string table = out("run '" + kSample +
                                "' --machine a100-sxm-80gb --set pcie=gen5 --scale kernels=1.1 --allocator ideal"
                                " --transfer-host --no-provenance --full -o run.h5" +
                                policy);
  EXPECT_EQ(err_, "");
  for (const char* part :
       {"on a100-sxm-80gb + pcie=gen5", "scale kernels=1.1", "allocator ideal", "host time transferred"})
    EXPECT_TRUE(has(headline(table), part)) << headline(table);
  EXPECT_TRUE(has(table, "host_dram, pcie_uplink_h2d, pcie_h2d")) << "the route's links";
  const std::string compared = out("compare base.h5 run.h5");
  EXPECT_TRUE(has(compared, "other: a100-sxm-80gb + pcie=gen5, ")) << compared.substr(0, 300);
  EXPECT_TRUE(has(headline(compared).substr(0, 400), "scale kernels=1.1, allocator ideal")) << compared;
  const std::string json = out("export run.h5 --to json -o -");
  EXPECT_TRUE(has(json, "\"pcie=gen5\"") && has(json, "\"transfer_host\": true")) << json.substr(0, 400);
  out("render base.h5 run.h5 --view compare -o both.svg");
  EXPECT_TRUE(has(content_of(folder_ / "both.svg"), "a100-sxm-80gb + pcie=gen5"));
  out("render run.h5 --view memory -o memory.svg");
  EXPECT_TRUE(has(content_of(folder_ / "memory.svg"), "a100-sxm-80gb + pcie=gen5"));
}

TEST_F(Overrides, MachinesShowWhatBoundsARoute) {
  const std::string text = out("machines show a100-sxm-80gb --set link.pcie_h2d.bandwidth=50GB/s");
  const std::size_t routes = text.find("\nRoutes: ");
  ASSERT_NE(routes, text.npos);
  EXPECT_TRUE(has(text.substr(routes), "pcie_uplink_h2d")) << text.substr(routes);
  EXPECT_TRUE(has(text.substr(routes), "26.00 GB/s"));
  EXPECT_TRUE(has(text.substr(routes), "\nFabrics: "));
}

TEST_F(Overrides, ARecipeTravelsToTheRun) {
  const std::string made = out("generate gpt2-124m --batch 2 --seq 128 --set layers=2 -o step.mwt");
  EXPECT_TRUE(has(made, "autocast to bf16, parameters fp32")) << made;
  EXPECT_TRUE(has(out("inspect step.mwt"), "precision=amp_bf16"));
  const std::string run = headline(out("run step.mwt --machine h100-sxm-80gb --no-provenance -o run.h5"));
  EXPECT_TRUE(has(run, "recipe, assumed where not given: autocast to bf16, parameters fp32 (precision=amp_bf16)"))
      << run;
  EXPECT_TRUE(has(run, "2 x 128 tokens (batch=2,sequence=128)")) << run;
  EXPECT_TRUE(has(out("export run.h5 --to json -o -"), "\"setting\": \"precision=amp_bf16\""));
  const std::string larger = headline(out("run step.mwt --machine h100-sxm-80gb --no-provenance --policy batch:4"));
  EXPECT_TRUE(has(larger, "4 samples per step")) << larger;
  EXPECT_FALSE(has(larger, "2 x 128 tokens")) << "no longer true";
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
