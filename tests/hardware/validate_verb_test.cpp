// memwall validate: does it end with exit code 4 when, and only when, something is outside? On measurements made up
// from a known machine: nothing here is timed.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <simdjson.h>

#include "models/hw/machine_file.h"
#include "tests/support/program.h"
#include "tests/support/validation_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class ValidateVerb : public ::testing::Test {
 protected:
  CommandOutcome run(const std::string& arguments, const std::string& environment = "") {
    return run_memwall(folder_, "validate " + arguments, environment);
  }

  void refused(const std::string& arguments, int code, const std::string& part) {
    const CommandOutcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, code) << arguments << ": " << outcome.err;
    EXPECT_NE(outcome.err.find(part), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "");
  }

  std::string half_bandwidth() const {
    const Machine machine = host_like_machine();
    return "link.pcie_h2d.bandwidth=" + std::to_string(machine.links[machine.link("pcie_h2d")].bandwidth / 2e9) +
           "GB/s";
  }

  ScratchFolder folder_;
};

TEST_F(ValidateVerb, PassesWhatIsTwoPercentOffAndFailsWithHalfABandwidth) {
  make_validation_folder(folder_ / "known", 1.02);
  const auto good = run("known");
  EXPECT_EQ(good.code, 0) << good.err;
  EXPECT_EQ(good.err, "");
  EXPECT_NE(good.out.find("step time"), std::string::npos);
  EXPECT_NE(good.out.find("+0.0 %"), std::string::npos);

  const auto half = run("known --set " + half_bandwidth());
  EXPECT_EQ(half.code, 4);
  EXPECT_NE(half.err.find("known: replay, chain.offload, copies host to hbm"), std::string::npos) << half.err;
  EXPECT_EQ(half.err.find("copies hbm to host"), std::string::npos) << half.err;
}

TEST_F(ValidateVerb, FindsFoldersOfItselfAndWhatIsAcceptedBesideThem) {
  make_validation_folder(folder_ / "data/known", 1.5);
  const std::string environment = "MEMWALL_VALIDATION_DATA='" + (folder_ / "data").string() + "'";
  const auto plain = run("--format csv", environment);
  EXPECT_EQ(plain.code, 4);
  EXPECT_NE(plain.out.find("not measured yet"), std::string::npos) << "the machines that are wanted";
  // Each row that is named becomes one that is explained.
  std::string accepted;
  for (std::size_t at = 0; (at = plain.err.find("known: replay, ", at)) != std::string::npos;) {
    at += 15;
    const std::size_t comma = plain.err.find(", ", at), colon = plain.err.find(": measured", comma);
    accepted += "| known | " + plain.err.substr(at, comma - at) + " | " +
                plain.err.substr(comma + 2, colon - comma - 2) + " | 1 | 1.5 | slowed by the test | accepted |\n";
  }
  ASSERT_NE(accepted, "");
  write_content(folder_ / "DEVIATIONS.md", accepted);
  const auto explained = run("--format csv", environment);
  EXPECT_EQ(explained.code, 0) << explained.err;
  EXPECT_NE(explained.out.find("accepted"), std::string::npos);
}

TEST_F(ValidateVerb, WritesJsonThatCanBeRead) {
  make_validation_folder(folder_ / "known", 1);
  const auto outcome = run("known --format json");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  simdjson::dom::parser parser;
  std::size_t rows = 0, judged = 0;
  for (const simdjson::dom::element row : parser.parse(outcome.out).get_array()) {
    ++rows;
    judged += std::string_view(row["status"]) == "within";
    EXPECT_EQ(std::string_view(row["machine"]), "known");
  }
  EXPECT_GT(rows, 30u);
  EXPECT_GT(judged, 20u);
  // What is not known is null.
  std::filesystem::create_directory(folder_ / "empty");
  const auto empty = run("--format json", "MEMWALL_VALIDATION_DATA='" + (folder_ / "empty").string() + "'");
  for (const simdjson::dom::element row : parser.parse(empty.out).get_array()) EXPECT_TRUE(row["measured"].is_null());
  // A folder that is not there is a slip of the pen, not a machine without measurements.
  EXPECT_EQ(run("", "MEMWALL_VALIDATION_DATA='" + (folder_ / "absent").string() + "'").code, 2);
}

TEST_F(ValidateVerb, KeepsRunsThatCompareTakes) {
  make_validation_folder(folder_ / "known", 1.05);
  ASSERT_EQ(run("known --runs runs").code, 0);
  const auto compared = run_memwall(
      folder_, "compare runs/known/chain.offload.simulated.h5 runs/known/chain.offload.measured.h5 --format json");
  EXPECT_EQ(compared.code, 0) << compared.err;
  const auto rendered = run_memwall(folder_, "render runs/known/chain.offload.measured.h5 -o measured.svg");
  EXPECT_EQ(rendered.code, 0) << rendered.err;
}

// The control on real measurements: a machine file whose bandwidth is wrong by half must not pass.
TEST_F(ValidateVerb, EveryBandwidthOfTheCommittedHostMattersByHalf) {
  const std::string folder = std::string(MEMWALL_SOURCE) + "/validate/data/two-core-epyc";
  ASSERT_EQ(run(folder).code, 0) << run(folder).err;
  const Machine machine = load_machine(folder + "/machine.textproto");
  for (const char* link : {"pcie_h2d", "pcie_d2h", "nvme_read", "nvme_write"}) {
    const double half = machine.links[static_cast<std::size_t>(machine.link(link))].bandwidth / 2;
    EXPECT_EQ(run(fmt::format("{} --set link.{}.bandwidth={}B/s", folder, link, half)).code, 4) << link;
  }
  EXPECT_EQ(
      run(fmt::format("{} --set gpu.hbm.bandwidth={}B/s", folder, machine.links[machine.hbm_link].bandwidth / 2)).code,
      4);
  for (const char* share : {"forward_share", "backward_share"})
    EXPECT_EQ(run(fmt::format("{} --set duplex.pcie_duplex.{}=0.5", folder, share)).code, 4) << share;
  EXPECT_EQ(
      run(fmt::format("{} --set host.optimizer_bandwidth={}B/s", folder, machine.host.optimizer_bandwidth / 2)).code,
      4);
  // And a call that costs what no call costs.
  EXPECT_EQ(run(folder + " --set 'host.calls.launch_latency=10 ms'").code, 4);
}

TEST_F(ValidateVerb, TheReadmeIsWhatIsCommitted) {
  const auto outcome = run("--markdown-readme");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, content_of(std::filesystem::path(MEMWALL_SOURCE) / "validate/README.md"))
      << "run `memwall validate --markdown-readme > README.md.new && mv README.md.new validate/README.md`";
}

TEST_F(ValidateVerb, TheReadmeNeedsAPlaceForItsTable) {
  make_validation_folder(folder_ / "data/known", 1);
  const std::string environment = "MEMWALL_VALIDATION_DATA='" + (folder_ / "data").string() + "'";
  write_content(folder_ / "README.md", "before\n<!-- table begin -->\nold\n<!-- table end -->\nafter\n");
  const auto outcome = run("--markdown-readme", environment);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(outcome.out.starts_with("before\n<!-- table begin -->\n")) << outcome.out;
  EXPECT_TRUE(outcome.out.ends_with("<!-- table end -->\nafter\n")) << outcome.out;
  EXPECT_EQ(outcome.out.find("old"), std::string::npos);
  EXPECT_NE(outcome.out.find("| known |"), std::string::npos);
  write_content(folder_ / "README.md", "no markers\n");
  EXPECT_EQ(run("--markdown-readme", environment).code, 6);
}

TEST_F(ValidateVerb, RefusesWhatMakesNoSense) {
  refused("absent", 6, "absent: there is no such folder");
  refused(".", 6, "found no results.csv");
  refused("known --live", 2, "--live measures anew");
  refused("--live --backend tpu", 2, "expected host or cuda");
  refused("--live --workload absent.mwt", 6, "absent.mwt");
  refused("--live --scratch absent", 2, "absent");
  write_content(folder_ / "file", "");
  refused("--live -o file/x", 2, "the folder cannot be made");
  refused("--strict", 2, "belong to --live");
  refused("-o x", 2, "belong to --live");
  refused("--seconds 5", 2, "belong to --live");
  refused("--backend cuda", 2, "belong to --live");
  refused("--markdown-readme --set gpu.hbm.bandwidth=1GB/s", 2, "writes down what is committed");
  refused("--format xml", 2, "xml");
  make_validation_folder(folder_ / "known", 1);
  refused("known --set link.pcie_h2x.bandwidth=1GB/s", 2, "pcie_h2");
  write_content(folder_ / "known/replay/chain.offload.execution.csv", "memwall execution 9\n");
  refused("known", 6, "chain.offload.execution.csv");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
