// Is every override that does nothing told, with what caps it, and is nothing said of one that matters? What is claimed
// is held against a second simulation, which the check itself does without.
#include "study/overrides/override_check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "study/study.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::string kGpt = std::string(MEMWALL_SOURCE) + "/traces/samples/gpt_124m.mwt";
const std::string kOffload = "offload:what=activations,to=host";

struct Question {
  std::string machine;
  std::vector<std::string> settings, policies = {};
  std::string pager = "";
  std::string step = kGpt;
};

Run answer(Study& study, const Question& q) {
  return study
      .run({.step = {q.step}, .machine = q.machine, .settings = q.settings, .policies = q.policies, .pager = q.pager})
      .run;
}

std::string told(const Question& q) {
  Study study;
  return fmt::format("{}", fmt::join(answer(study, q).warnings, "\n"));
}

bool says(const std::string& text, const std::string& part) { return text.find(part) != text.npos; }

TEST(OverrideCheck, NamesTheUplinkThatCapsALink) {
  const std::string text = told({"a100-sxm-80gb", {"link.pcie_h2d.bandwidth=50GB/s"}, {kOffload}});
  EXPECT_EQ(text,
            "link.pcie_h2d.bandwidth=50GB/s changes nothing: routes over pcie_h2d are bounded by pcie_uplink_h2d at 26 "
            "GB/s (set link.pcie_uplink_h2d.bandwidth as well, or --set pcie=gen5).");
}

TEST(OverrideCheck, IsSilentWhereTheBusWasMeant) {
  EXPECT_EQ(told({"a100-sxm-80gb", {"pcie=gen5"}, {kOffload}}), "");
  EXPECT_EQ(
      told({"a100-sxm-80gb", {"link.pcie_h2d.bandwidth=50GB/s", "link.pcie_uplink_h2d.bandwidth=50GB/s"}, {kOffload}}),
      "")
      << "neither does anything without the other, but both do together";
}

TEST(OverrideCheck, TellsWhatTakesEffectInPart) {
  const std::string text =
      told({"a100-sxm-80gb", {"link.pcie_uplink_h2d.bandwidth=30GB/s", "link.pcie_h2d.bandwidth=50GB/s"}, {kOffload}});
  EXPECT_TRUE(
      says(text, "link.pcie_h2d.bandwidth=50GB/s takes effect in part: h2d is bounded by pcie_uplink_h2d at 30 GB/s"))
      << text;
}

TEST(OverrideCheck, TellsWhatNothingGoesOver) {
  const std::string text = told({"h100-sxm-80gb", {"link.nvme_read.bandwidth=100GB/s"}});
  EXPECT_TRUE(says(text, "changes nothing: nothing in this run goes over nvme_read")) << text;
  EXPECT_TRUE(says(told({"h100-sxm-80gb", {"fabric.network.bus_bandwidth=100GB/s"}}), "no collective runs"));
  EXPECT_TRUE(
      says(told({"h100-sxm-80gb", {"route.to_peer.latency=1ms"}}), "nothing in this run goes over route to_peer"));
  EXPECT_TRUE(says(told({"h100-sxm-80gb", {"nvlink=off"}}), "changes nothing"));
}

TEST(OverrideCheck, TellsWhatIsThatAlready) {
  EXPECT_EQ(told({"a100-sxm-80gb", {"link.pcie_h2d.bandwidth=26e9 B/s"}}),
            "link.pcie_h2d.bandwidth=26e9 B/s changes nothing: it is 26 GB/s without it.");
  EXPECT_EQ(told({"a100-sxm-80gb", {"pcie=gen4"}}),
            "pcie=gen4 changes nothing: its links have those rates without it.");
  EXPECT_TRUE(says(told({"a100-sxm-80gb", {"gpu.hbm.bandwidth=1TB/s", "gpu.hbm.bandwidth=3TB/s"}}),
                   "gpu.hbm.bandwidth=1TB/s changes nothing: a later --set makes it 3TB/s."));
  EXPECT_TRUE(says(told({"h100-sxm-80gb", {"calibration.products_bf16.limit=0.3"}}), "is not computed from it"));
}

TEST(OverrideCheck, TellsThatALaterOneCounts) {
  const std::string text = told({"h100-sxm-80gb", {"pcie=gen4", "pcie=gen5"}});
  EXPECT_TRUE(text.starts_with("pcie=gen4 changes nothing: a later --set makes it gen5.\n")) << text;
}

TEST(OverrideCheck, AdvisesOnlyWhatIsUsed) {
  const std::string text = told({"h100-sxm-80gb", {"host.dram.bandwidth=1TB/s"}, {kOffload}});
  EXPECT_TRUE(says(text, "(set link.pcie_d2h.bandwidth and link.pcie_h2d.bandwidth as well")) << text;
  EXPECT_FALSE(says(text, "nvme")) << text;
}

TEST(OverrideCheck, TellsOfMemoryThatIsNeverFull) {
  const std::string larger = told({"h100-sxm-80gb", {"gpu.hbm.capacity=200GB"}});
  EXPECT_TRUE(says(larger, "gpu.hbm.capacity=200GB changes no time: hbm holds at most")) << larger;
  EXPECT_TRUE(says(told({"h100-sxm-80gb", {"tier.nvme.capacity=1TB"}}), "nothing in this run is kept in nvme"));
  EXPECT_EQ(told({"h100-sxm-80gb", {"gpu.hbm.capacity=1GB"}}), "") << "too little";
}

// An allocator that came near what there is may have been short of room on its way.
TEST(OverrideCheck, ClaimsMemoryIdleUpToNineTenthsOfIt) {
  Study study;
  const memwall::Run run = answer(study, {"a100-sxm-80gb", {}});
  const auto hbm = static_cast<std::size_t>(run.machine.one.tier("hbm"));
  const auto peak = static_cast<double>(run.result.tiers[hbm].peak_reserved);
  const auto unavailable = static_cast<double>(run.machine.one.tiers[hbm].unavailable);
  const auto at = [&](double share) {
    return told({"a100-sxm-80gb", {fmt::format("gpu.hbm.capacity={:.0f} B", peak / share + unavailable)}});
  };
  EXPECT_TRUE(says(at(0.88), "hbm holds at most")) << at(0.88);
  EXPECT_FALSE(says(at(0.92), "hbm holds at most")) << at(0.92);
}

TEST(OverrideCheck, ClaimsNothingOfMemoryThatIsNotRecorded) {
  const ScratchFolder folder;
  write_content(folder / "kernels.json", R"({"traceEvents":[
{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":5,"ts":100,"dur":60},
{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel","pid":1,"tid":5,"ts":110,"dur":5,"args":{"correlation":1}},
{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":130,"dur":20,"args":{"stream":7,"device":0,"correlation":1}}
]})");
  const std::string step = (folder / "kernels.json").string();
  const std::string text = told({"h100-sxm-80gb", {"gpu.hbm.capacity=1GB"}, {}, "", step});
  EXPECT_TRUE(says(text, "what hbm holds is not recorded here")) << text;
  EXPECT_FALSE(says(text, "0 B")) << text;
}

TEST(OverrideCheck, IsSilentWhereKernelsArePriced) {
  EXPECT_EQ(told({"h100-sxm-80gb", {"gpu.hbm.bandwidth=5TB/s"}}), "");
  EXPECT_EQ(told({"h100-sxm-80gb", {"gpu.multiprocessors=20"}}), "") << "the engine asks for them";
  EXPECT_TRUE(says(told({"h100-sxm-80gb", {"gpu.peak.fp64.rate=1PFLOP/s"}}), "no op of this run is priced by it"));
}

// Of every claim the control: the same run without the override ends at the same instant, op by op.
TEST(OverrideCheck, ClaimsNothingThatASecondSimulationRefutes) {
  const std::vector<std::string> settings = {"link.pcie_h2d.bandwidth=50GB/s",
                                             "link.pcie_d2h.bandwidth=10GB/s",
                                             "link.pcie_uplink_d2h.bandwidth=60GB/s",
                                             "host.dram.bandwidth=1TB/s",
                                             "host.dram.bandwidth=20GB/s",
                                             "gpu.hbm.bandwidth=8TB/s",
                                             "duplex.pcie_duplex.forward_share=1",
                                             "duplex.pcie_duplex.forward_share=0.5",
                                             "link.nvlink_out.bandwidth=1TB/s",
                                             "fabric.nvlink.bus_bandwidth=10GB/s",
                                             "fabric.pcie.bus_bandwidth=1GB/s",
                                             "gpu.hbm.capacity=60GB",
                                             "host.optimizer_bandwidth=1GB/s",
                                             "host.calls.launch=50us",
                                             "route.h2d.latency=1ms",
                                             "route.d2h_pageable.bandwidth=1GB/s",
                                             "gpu.l2_capacity=1MB",
                                             "gpu.peak.fp64.rate=1PFLOP/s",
                                             "gpu.collective_multiprocessors=50",
                                             "host.cores=1",
                                             "pcie=gen5",
                                             "nvlink=off"};
  const std::vector<std::pair<std::vector<std::string>, std::string>> ways = {{{}, ""},
                                                                              {{kOffload}, ""},
                                                                              {{"offload:what=optimizer,to=host"}, ""},
                                                                              {{"zero:stage=2,ranks=8"}, ""},
                                                                              {{}, "lru"}};
  std::size_t claims = 0;
  for (const auto& [policies, pager] : ways) {
    Study study;
    const std::vector<std::string> small =
        pager.empty() ? std::vector<std::string>{} : std::vector<std::string>{"gpu.hbm.capacity=6GB"};
    const memwall::Run plain = answer(study, {"a100-sxm-80gb", small, policies, pager});
    for (const std::string& setting : settings) {
      std::vector<std::string> with = small;
      with.push_back(setting);
      const memwall::Run run = answer(study, {"a100-sxm-80gb", with, policies, pager});
      for (const std::string& warning : run.warnings) {
        if (!warning.starts_with(setting + " changes no")) continue;
        ++claims;
        EXPECT_EQ(run.result.end, plain.result.end) << fmt::format("{}\n{}", fmt::join(policies, " "), warning);
        ASSERT_EQ(run.result.records.size(), plain.result.records.size());
        for (std::size_t i = 0; i < run.result.records.size(); ++i)
          ASSERT_EQ(run.result.records[i].end, plain.result.records[i].end) << warning;
      }
    }
  }
  EXPECT_GT(claims, 30u);
}

TEST(OverrideCheck, StandsInTheRun) {
  Study study;
  const memwall::Run run = answer(study, {"a100-sxm-80gb", {"pcie=gen4"}});
  EXPECT_EQ(run.changes.overrides, std::vector<std::string>{"pcie=gen4"});
  EXPECT_EQ(machine_text(run.machine.name, run.changes.overrides), "a100-sxm-80gb + pcie=gen4");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
