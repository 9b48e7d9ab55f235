// Does a damaged results file always end in a sentence, or in results that can be written again? Seeded, so
// that a failure can be repeated.
#include <random>

#include "sim/error.h"
#include "tests/support/damage.h"
#include "validate/measurement/results_file.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::string whole_file() {
  MeasurementSet set;
  set.environment = {{"date", "2025-01-01T00:00:00Z"}, {"cpu.name", "some \"name\", quoted"}, {"cpu.count", "2"}};
  for (int i = 0; i < 12; ++i) {
    Measurement m;
    m.benchmark = i % 2 == 0 ? "copy_host_hbm_pinned" : "gemm_bf16";
    m.parameters = {{"bytes", std::to_string(4096 << i)}, {"method", "io_uring, O_DIRECT"}};
    m.low = 1e-6 * i;
    m.median = 1.5e-6 * i;
    m.high = 2e-6 * i;
    m.samples = 5;
    m.bytes = 4096 << i;
    if (i % 5 == 4) m.status = MeasurementStatus::failed;
    if (i % 3 == 0) m.note = "a note,\n\"of two\" lines";
    set.measurements.push_back(m);
  }
  return results_csv(set);
}

// True if refused. What is accepted says the same again once it is written and read.
bool refused(const std::string& text) {
  try {
    const std::string again = results_csv(parse_results(text, "results.csv"));
    EXPECT_EQ(results_csv(parse_results(again, "again")), again);
    return false;
  } catch (const InputError& error) {
    const std::string message = error.what();
    EXPECT_TRUE(message.starts_with("results.csv:")) << message;
    EXPECT_NE(message.find(", expected "), std::string::npos) << message;
    return true;
  }
}

TEST(ResultsFileFuzz, DamageIsRefusedOrHarmless) {
  const std::string whole = whole_file();
  ASSERT_FALSE(refused(whole));
  std::mt19937_64 random(1);
  int refusals = 0;
  for (int i = 0; i < 20'000; ++i) refusals += refused(damaged(whole, random));
  EXPECT_GT(refusals, 5'000);
  EXPECT_LT(refusals, 20'000);  // a digit or a letter of a note may change
}

TEST(ResultsFileFuzz, EveryTruncationAmidALineIsRefused) {
  const std::string whole = whole_file();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::string cut = whole.substr(0, size);
    if (!cut.ends_with('\n')) {
      EXPECT_TRUE(refused(cut)) << size;
    } else {
      refused(cut);
    }
  }
}

TEST(ResultsFileFuzz, ForeignBytesAreRefused) {
  std::mt19937_64 random(3);
  const std::string whole = whole_file();
  for (int i = 0; i < 300; ++i) {
    std::string bytes(1 + random() % 3'000, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    EXPECT_TRUE(refused(bytes));
    EXPECT_TRUE(refused(whole + bytes)) << i;
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
