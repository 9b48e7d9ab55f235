// What a machine file says of drives: read, overridden, refused where it does not go together.
#include "models/hw/machine_drives.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/hw/machine_file.h"
#include "models/hw/machine_file_builder.h"
#include "sim/error.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

const std::string kFourTiers = std::string(MEMWALL_SOURCE) + "/tests/machines/four-tiers.textproto";

const std::vector<std::string> kDrives = {"tier.nvme.drives=4", "tier.nvme.endurance=1200TB",
                                          "tier.nvme.write_cache=100GB", "tier.nvme.sustained_write_bandwidth=1GB/s"};

const Tier& nvme_of(const Machine& machine) { return machine.tiers[static_cast<std::size_t>(machine.tier("nvme"))]; }
const Link& write_link_of(const Machine& machine) {
  return machine.links[static_cast<std::size_t>(nvme_of(machine).write_link)];
}

std::string refusal(const std::vector<std::string>& settings, const std::string& machine = kFourTiers) {
  try {
    load_machine(machine, settings);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

void expect_says(const std::string& text, const std::string& words) {
  EXPECT_NE(text.find(words), std::string::npos) << "said: " << text;
}

TEST(MachineDrives, AreReadWithTheirUnits) {
  const Machine machine = load_machine(kFourTiers, kDrives);
  EXPECT_EQ(nvme_of(machine).drives, 4u);
  EXPECT_EQ(nvme_of(machine).endurance, 1'200'000'000'000'000);
  EXPECT_EQ(write_link_of(machine).name, "nvme_write");
  EXPECT_EQ(write_link_of(machine).write_cache, 100'000'000'000);
  EXPECT_DOUBLE_EQ(write_link_of(machine).sustained, 1e9);
  EXPECT_TRUE(write_link_of(machine).falls_off());
  const Machine in_petabytes = load_machine(kFourTiers, {"tier.nvme.drives=1", "tier.nvme.endurance=1.2PB"});
  EXPECT_EQ(nvme_of(in_petabytes).endurance, nvme_of(machine).endurance);
}

TEST(MachineDrives, AreNotKnownWhereNothingIsSaid) {
  const Machine machine = load_machine(kFourTiers);
  EXPECT_EQ(nvme_of(machine).drives, 0u);
  EXPECT_EQ(nvme_of(machine).endurance, 0);
  EXPECT_EQ(write_link_of(machine).name, "nvme_write") << "what is written can be counted all the same";
  EXPECT_FALSE(write_link_of(machine).falls_off());
  for (const Tier& tier : machine.tiers)
    EXPECT_EQ(tier.write_link >= 0, tier.tier_class == TierClass::storage) << tier.name;
}

TEST(MachineDrives, ARateOfTheLinkItselfIsNoFalloff) {
  const Machine machine =
      load_machine(kFourTiers, {"tier.nvme.write_cache=1GB", "tier.nvme.sustained_write_bandwidth=4GB/s"});
  EXPECT_FALSE(write_link_of(machine).falls_off());
}

TEST(MachineDrives, NumbersThatDoNotGoTogetherAreRefused) {
  expect_says(refusal({"tier.nvme.endurance=1PB"}), "has endurance without drives");
  expect_says(refusal({"tier.nvme.write_cache=1GB"}), "has write_cache without sustained_write_bandwidth");
  expect_says(refusal({"tier.nvme.sustained_write_bandwidth=1GB/s"}),
              "has sustained_write_bandwidth without write_cache");
  expect_says(refusal({"tier.nvme.drives=0"}), "has 0 drives; expected at least 1");
  expect_says(refusal({"tier.nvme.drives=1", "tier.nvme.endurance=0B"}), "has an endurance of 0 B");
  expect_says(refusal({"tier.nvme.write_cache=1GB", "tier.nvme.sustained_write_bandwidth=5GB/s"}),
              "sustains writes of 5.000 GB/s, more than the 4.000 GB/s of its link \"nvme_write\"");
  expect_says(refusal({"tier.cxl.drives=2"}),
              "tier \"cxl\" has drives, endurance or a write cache and is not of class");
}

TEST(MachineDrives, NumbersThatAreNoneAreRefused) {
  expect_says(refusal({"tier.nvme.drives=-1"}), "a number that is not negative");
  expect_says(refusal({"tier.nvme.drives=1.5"}), "a whole number");
  expect_says(refusal({"tier.nvme.endurance=-1PB"}), "a number that is not negative");
  expect_says(refusal({"tier.nvme.endurance=7"}), "has no unit");
  expect_says(refusal({"tier.nvme.write_cache=1GB/s"}), "is a bandwidth; expected a size");
  expect_says(refusal({"tier.nvme.sustained_write_bandwidth=0GB/s"}), "more than 0");
  expect_says(refusal({"tier.nvme.enduranse=1PB"}), "endurance");
}

// A link that reads cross too would count them as writes.
TEST(MachineDrives, NeedALinkThatWritesHaveToThemselves) {
  MachineFileBuilder draft(kFourTiers);
  draft.set("tier.nvme.drives", "1", "example: a round number");
  std::string text = draft.text("");
  EXPECT_NO_THROW(parse_machine(text, "draft"));
  MachineFileBuilder unreachable(kFourTiers);
  unreachable.set("tier.nvme.drives", "1", "example: a round number");
  unreachable.clear("route.host_to_nvme");
  EXPECT_NO_THROW(parse_machine(unreachable.text(""), "draft")) << "nothing is written to it";
  for (std::size_t at = 0; (at = text.find("crosses: \"nvme_read\"", at)) != std::string::npos;)
    text.replace(at, 20, "crosses: \"nvme_write\"");
  try {
    parse_machine(text, "draft");
    ADD_FAILURE() << "not refused";
  } catch (const InputError& error) {
    expect_says(error.what(), "cannot be told from other traffic");
  }
}

TEST(MachineDrives, ComeBackFromAFileThatIsWritten) {
  MachineFileBuilder draft(kFourTiers);
  const std::string source = "example: a round number";
  draft.set("tier.nvme.drives", "4", source);
  draft.set("tier.nvme.endurance", "1200 TB", source);
  draft.set("tier.nvme.write_cache", "100 GB", source);
  draft.set("tier.nvme.sustained_write_bandwidth", "1 GB/s", source);
  const Machine back = parse_machine(draft.text("a draft"), "draft"), expected = load_machine(kFourTiers, kDrives);
  EXPECT_EQ(nvme_of(back), nvme_of(expected));
  EXPECT_EQ(write_link_of(back), write_link_of(expected));
}

TEST(MachineDrives, OfShippedMachinesAreWhatTheirCapacitySays) {
  for (const Machine& machine : sound_machines(nullptr))
    for (const Tier& tier : machine.tiers) {
      EXPECT_EQ(tier.write_link >= 0, tier.tier_class == TierClass::storage) << machine.name;
      if (tier.endurance == 0) continue;
      // A drive is written between 100 and 10,000 times.
      const double writes = static_cast<double>(tier.endurance) * tier.drives / static_cast<double>(tier.capacity);
      EXPECT_GT(writes, 100) << machine.name;
      EXPECT_LT(writes, 10'000) << machine.name;
    }
  const Machine dgx = load_machine("h100-sxm-80gb");
  EXPECT_EQ(nvme_of(dgx).drives, 8u);
  EXPECT_FALSE(write_link_of(dgx).falls_off());
  EXPECT_TRUE(write_link_of(load_machine("rtx-3090")).falls_off());
}

// Queue depth and block size are numbers as any other.
TEST(MachineDrives, RequestsOfARouteAreListedAndOverridden) {
  std::vector<std::string> paths;
  for (const MachineNumber& number : machine_numbers("rtx-3090")) paths.push_back(number.path);
  for (const char* path : {"route.host_to_nvme.requests.block", "route.host_to_nvme.requests.depth",
                           "route.host_to_nvme.requests.latency", "tier.nvme.write_cache", "tier.nvme.endurance"})
    EXPECT_NE(std::find(paths.begin(), paths.end(), path), paths.end()) << path;
  const auto rate = [](const std::vector<std::string>& settings) {
    const Machine machine = load_machine("rtx-3090", settings);
    return machine.route(machine.tier("host"), machine.tier("nvme"), false)->bandwidth;
  };
  EXPECT_NEAR(rate({"route.host_to_nvme.requests.depth=2"}) / rate({"route.host_to_nvme.requests.depth=1"}), 2, 1e-9);
  EXPECT_NEAR(rate({"route.host_to_nvme.requests.depth=1", "route.host_to_nvme.requests.block=64KiB"}) /
                  rate({"route.host_to_nvme.requests.depth=1", "route.host_to_nvme.requests.block=32KiB"}),
              2, 1e-9);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
