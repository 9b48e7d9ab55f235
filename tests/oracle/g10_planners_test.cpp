// What do the planners reach on the workloads that G10 publishes, beside what its simulator says of its policies? The
// table of docs/policies.md is made here (MEMWALL_UPDATE_GOLDEN=1) and held against the program.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "sim/human_text.h"
#include "study/study.h"
#include "tests/support/shared_data.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::vector<std::string> kWorkloads = {"BERT-128",        "BERT-256",      "BERT-512",     "VIT-1024",
                                             "Inceptionv3-512", "ResNet152-256", "ResNet152-512"};
const std::vector<std::string> kPlanners = {
    "capuchin", "capuchin:use=swaps", "vdnn", "vdnn:layers=conv", "chen", "rotor", "g10"};

struct Reached {
  double seconds = 0;
  bool fits = false;
  Bytes missing = 0, reserved = 0, out = 0, in = 0;
};

class G10Planners : public testing::Test {
 protected:
  void SetUp() override {
    const auto data = shared_data();
    if (!data) GTEST_SKIP() << "no workloads: MEMWALL_SHARED names no folder with data/";
    folder_ = *data / "g10";
    std::ifstream file(folder_ / "expected.csv");
    for (std::string line; std::getline(file, line);) {
      std::istringstream cells(line);
      std::string workload, policy, cycles;
      std::getline(cells, workload, ','), std::getline(cells, policy, ','), std::getline(cells, cycles, ',');
      if (!cycles.empty() && std::isdigit(static_cast<unsigned char>(cycles[0])) && workload[0] != '#')
        published_[{workload, policy}] = std::stod(cycles) / 1.2e9;
    }
  }

  Reached run(const std::string& workload, const std::string& policy) {
    Scenario scenario;
    scenario.step = {(folder_ / (workload + ".kernels.csv")).string()};
    scenario.machine = "g10-a100-40gb";
    if (!policy.empty()) scenario.policies = {policy};
    const memwall::Run run = study_.run(scenario, {.record = false}).run;
    const Machine& machine = run.machine;
    const TierResult& hbm = run.result.tiers[static_cast<std::size_t>(machine.tier("hbm"))];
    const auto carried = [&](const char* link) {
      return run.result.links[static_cast<std::size_t>(machine.link(link))].bytes;
    };
    return {to_seconds(run.result.end), run.result.fits,     hbm.missing,
            hbm.peak_reserved,          carried("pcie_d2h"), carried("pcie_h2d")};
  }

  std::optional<double> published(const std::string& workload, const std::string& policy) const {
    const auto found = published_.find({workload, policy});
    return found == published_.end() ? std::nullopt : std::optional(found->second);
  }

  std::string row(const std::string& workload, const std::string& policy) {
    const Reached r = run(workload, policy);
    const double ideal = *published(workload, "ideal");
    return fmt::format("| {} | `{}` | {:.3f} s | {:.2f} % | {} | {} | {} | {} |\n", workload, policy, r.seconds,
                       100 * ideal / r.seconds, r.fits ? "yes" : "no, " + human_bytes(r.missing) + " are missing",
                       human_bytes(r.reserved), human_bytes(r.out), human_bytes(r.in));
  }

  std::string published_row(const std::string& workload) const {
    const double ideal = *published(workload, "ideal");
    std::string text = "| " + workload + fmt::format(" | {:.3f} s", ideal);
    for (const char* policy : {"g10", "deepum_plus", "flashneuron", "base_uvm"}) {
      const auto seconds = published(workload, policy);
      text += seconds ? fmt::format(" | {:.3f} s, {:.2f} %", *seconds, 100 * ideal / *seconds) : " | none";
    }
    return text + " |\n";
  }

  std::string table() {
    std::string text =
        "| workload | policy | step | of the ideal | fits | reserved | copied out | copied back |\n"
        "|---|---|---|---|---|---|---|---|\n";
    for (const std::string& workload : kWorkloads)
      for (const std::string& policy : kPlanners) text += row(workload, policy);
    text +=
        "\nPublished (times of `expected.csv`, cycles / 1.2 GHz; none: not published, or the policy cannot run it):\n\n"
        "| workload | ideal | G10 | DeepUM+ | FlashNeuron | base UVM |\n|---|---|---|---|---|---|\n";
    for (const std::string& workload : kWorkloads) text += published_row(workload);
    return text;
  }

  std::filesystem::path folder_;
  std::map<std::pair<std::string, std::string>, double> published_;
  Study study_;
};

TEST_F(G10Planners, TheTableOfTheDocumentationIsTrue) {
  const std::filesystem::path page = std::filesystem::path(MEMWALL_SOURCE) / "docs/policies.md";
  std::stringstream text;
  text << std::ifstream(page).rdbuf();
  std::string document = text.str();
  const std::string begin = "<!-- planners on G10's workloads -->\n", end = "<!-- end -->";
  const std::size_t first = document.find(begin) + begin.size(), last = document.find(end);
  ASSERT_LE(first, last);
  const std::string found = document.substr(first, last - first), expected = table();
  if (std::getenv("MEMWALL_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(page) << document.replace(first, last - first, expected);
    return;
  }
  EXPECT_EQ(found, expected);
}

TEST_F(G10Planners, CapuchinKeepsToTheMemoryAndBeatsG10) {
  for (const std::string& workload : kWorkloads) {
    const Reached reached = run(workload, "capuchin");
    EXPECT_TRUE(reached.fits) << workload;
    const double ideal = *published(workload, "ideal");
    EXPECT_GE(reached.seconds, ideal * 0.999) << workload << ": no kernel is left out";
    // BERT-512 needs parameters to move, too: 67.0 % for G10, 64 % here.
    if (workload != "BERT-512") {
      EXPECT_LE(reached.seconds, *published(workload, "g10") * 1.0001) << workload;
    }
  }
}

// Where its plan needs no pager. The allocator's flushes of its cache are in our time, not in theirs.
TEST_F(G10Planners, G10TakesAboutAsLongAsItsSimulatorSays) {
  std::size_t planned = 0;
  for (const std::string& workload : kWorkloads) {
    const Reached reached = run(workload, "g10");
    EXPECT_EQ(reached.fits, workload != "BERT-512" && workload != "VIT-1024") << workload;
    if (!reached.fits) continue;
    const double theirs = *published(workload, "g10");
    EXPECT_NEAR(reached.seconds, theirs, 0.02 * theirs) << workload;
    planned += reached.out > 0 ? 1 : 0;
  }
  EXPECT_EQ(planned, 4u);
}

TEST_F(G10Planners, TheIdealIsTheStepWithUnlimitedMemory) {
  for (const std::string& workload : kWorkloads)
    EXPECT_NEAR(run(workload, "").seconds, *published(workload, "ideal"), 0.0005 * *published(workload, "ideal"))
        << workload;
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
