// Does any damage to an execution end in a sentence?
#include <gtest/gtest.h>

#include <random>

#include "sim/error.h"
#include "tests/support/damage.h"
#include "validate/replay/execution.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

std::string good_text() {
  Execution e;
  e.schedule = "gpt";
  e.schedule_hash = schedule_hash("gpt");
  e.environment = {{"backend", "cuda"}, {"gpu.name", "GPU"}};
  e.totals = {microseconds(900), microseconds(901), microseconds(905)};
  e.chosen = 1;
  for (int i = 0; i < 40; ++i) {
    const Time at = nanoseconds(20'000 * i);
    const bool device = i % 2 == 1;
    e.times.push_back({at, at + nanoseconds(5000), device ? at + nanoseconds(7000) : kNever,
                       device ? at + nanoseconds(21'000) : kNever});
    e.alone.push_back(device ? nanoseconds(13'000) : Duration{});
  }
  e.peaks = {{"hbm", 100, 200}, {"host", 1, 2}};
  e.integrity = {4, 4000, 0, ""};
  return execution_text(e);
}

// True if the text was refused with a sentence; what is accepted must be what was written.
bool refused(const std::string& text) {
  try {
    EXPECT_EQ(execution_text(parse_execution(text, "damaged.csv")), text);
    return false;
  } catch (const InputError& error) {
    const std::string sentence = error.what();
    EXPECT_EQ(sentence.find("damaged.csv:"), 0u) << sentence;
    EXPECT_EQ(sentence.back(), '.') << sentence;
    return true;
  }
}

TEST(ExecutionFuzz, DamagedTextIsRefusedOrTheSame) {
  const std::string text = good_text();
  ASSERT_FALSE(refused(text));
  std::mt19937_64 random(6);
  int refusals = 0;
  constexpr int kTries = 20'000;
  for (int i = 0; i < kTries; ++i) refusals += refused(damaged(text, random));
  EXPECT_GT(refusals, kTries / 2);
}

TEST(ExecutionFuzz, EveryPrefixIsRefused) {
  const std::string text = good_text();
  for (std::size_t length = 0; length < text.size(); ++length) EXPECT_TRUE(refused(text.substr(0, length))) << length;
}

TEST(ExecutionFuzz, NoiseIsRefused) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 1000; ++i) {
    std::string noise = i % 2 ? "memwall execution 1\n" : "";
    for (std::uint64_t n = random() % 300; n > 0; --n) noise.push_back(static_cast<char>(random()));
    EXPECT_TRUE(refused(noise));
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
