// Whatever happens to a machine file: is it read, or refused with a sentence, and nothing else?
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "models/hw/machine_file.h"
#include "models/hw/pricer.h"
#include "sim/error.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::string shipped(const char* name) {
  return content_of(std::filesystem::path(MEMWALL_SOURCE) / "models/hw/machines" / (std::string(name) + ".textproto"));
}

// Bytes flipped, pieces cut, doubled or moved: what editors and disks do.
std::string damaged(std::string text, std::mt19937& random) {
  const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % std::max<std::size_t>(n, 1)); };
  for (std::size_t edits = 1 + below(3); edits > 0 && !text.empty(); --edits) {
    const std::size_t at = below(text.size()), length = below(std::min<std::size_t>(text.size() - at, 60)) + 1;
    switch (below(5)) {
      case 0:
        text[at] = static_cast<char>(random());
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(at, length));
        break;
      case 3:
        text.insert(below(text.size()), text.substr(at, length));
        break;
      default:
        text.insert(at, std::string("-9e99\"{}[]:").substr(below(8), 3));
        break;
    }
  }
  return text;
}

TEST(MachineFileFuzz, DamagedFilesAreReadOrRefusedInASentence) {
  const ScratchFolder folder;
  const std::string path = (folder / "fuzzed.textproto").string();
  const std::string texts[] = {shipped("h100-sxm-80gb"), shipped("rtx-2080ti")};
  std::mt19937 random(20240607);
  int read = 0, refused = 0;
  for (int round = 0; round < 1500; ++round) {
    write_content(path, damaged(texts[round % 2], random));
    try {
      const Machine machine = load_machine(path);
      EXPECT_GE(machine.tiers.front().usable(), 0);
      for (const Route& route : machine.routes) EXPECT_GT(route.bandwidth, 0);
      make_pricer(machine)->copy("host", "hbm", 1 << 20, false);
      ++read;
    } catch (const InputError& error) {
      EXPECT_TRUE(std::string(error.what()).starts_with(path)) << error.what();
      EXPECT_GT(std::string(error.what()).size(), path.size() + 20);
      ++refused;
    } catch (const UsageError&) {
      ++refused;  // the route was edited away
    }
  }
  EXPECT_GT(read, 50);
  EXPECT_GT(refused, 300);
}

TEST(MachineFileFuzz, ANameAsLongAsTheFileIsRefused) {
  for (const std::string& text :
       {fmt::format("{:x>900000}: 1", ""), fmt::format("gpu {{ peak {{ data_type: {:x>900000}", "")}) {
    try {
      parse_machine(text, "long.textproto");
      FAIL() << "accepted";
    } catch (const InputError& error) {
      EXPECT_LT(std::string(error.what()).size(), 1000u);
    }
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
