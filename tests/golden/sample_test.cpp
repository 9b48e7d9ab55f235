// Is the shipped sample exactly what its generator writes today? After a deliberate change of the
// generator, of a machine or of the format: build the target write_sample and run it.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "sim/trace/trace_check.h"
#include "tests/support/sample.h"
#include "traces/trace/trace_file.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Both through the writer of today: another version of zstd packs the same trace into other bytes.
TEST(Sample, TheShippedFileIsWhatTheGeneratorWrites) {
  const auto folder = std::filesystem::temp_directory_path();
  const auto fresh = folder / "memwall_sample_fresh.mwt", shipped = folder / "memwall_sample_shipped.mwt";
  write_trace(sample_gpt_124m(), fresh);
  write_trace(read_trace(std::filesystem::path(MEMWALL_SOURCE) / "traces/samples/gpt_124m.mwt"), shipped);
  EXPECT_GT(bytes_of(fresh).size(), 1000u);
  EXPECT_TRUE(bytes_of(shipped) == bytes_of(fresh)) << "run the target write_sample";
  std::filesystem::remove(fresh);
  std::filesystem::remove(shipped);
}

TEST(Sample, IsSound) { EXPECT_EQ(check(sample_gpt_124m()), std::vector<std::string>{}); }

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
