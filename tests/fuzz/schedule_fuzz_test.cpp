// Does any damage to a schedule end in a sentence, and whatever is accepted, in an execution or a sentence?
#include <gtest/gtest.h>

#include <random>

#include "sim/error.h"
#include "sim/trace/trace_check.h"
#include "tests/support/damage.h"
#include "tests/support/gpt_trace.h"
#include "tests/support/random_trace.h"
#include "tests/support/rewrite_checks.h"
#include "tests/support/scripted_backend.h"
#include "validate/replay/execution.h"
#include "validate/replay/schedule.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

ScriptedSettings small_memory() {
  ScriptedSettings settings;
  settings.device_capacity = MiB(64);
  settings.host_capacity = settings.file_capacity = MiB(4);
  return settings;
}

// True if it came to an end; false if it was refused or failed with a sentence.
bool executed(const Trace& schedule, const StepContents& contents = {}) {
  ScriptedBackend backend(small_memory());
  ExecutionSettings settings;
  settings.contents = contents;
  settings.passes = 1;
  bool done = false;
  try {
    const Execution e = execute(schedule, backend, settings);
    EXPECT_EQ(e.times.size(), schedule.ops.size());
    const std::string text = execution_text(e);
    EXPECT_EQ(execution_text(parse_execution(text, "x")), text);
    done = true;
  } catch (const UsageError& error) {
    EXPECT_EQ(std::string(error.what()).back(), '.');
  } catch (const std::runtime_error& error) {
    EXPECT_GT(std::string(error.what()).size(), 10u);
  }
  EXPECT_EQ(backend.live_segments + backend.live_host, 0u);
  return done;
}

// True if the text was refused with a sentence; anything but InputError escapes and fails the test.
bool refused(const std::string& text, Trace& read, StepContents& contents) {
  try {
    read = parse_schedule(text, "damaged.schedule", &contents);
    EXPECT_TRUE(check(read).empty());
    EXPECT_EQ(schedule_text(read, contents), text);
    return false;
  } catch (const InputError& error) {
    const std::string sentence = error.what();
    EXPECT_EQ(sentence.find("damaged.schedule:"), 0u) << sentence;
    EXPECT_EQ(sentence.back(), '.') << sentence;
    return true;
  }
}

class ScheduleFuzz : public testing::Test {
 protected:
  static std::string good(const std::string& policy) {
    GptShape shape;
    shape.layers = 1;
    const Trace step = gpt_step(shape);
    const Trace schedule = schedule_of(rewritten(step, policy), {}, 0.25);
    return schedule_text(schedule,
                         step_contents(schedule, schedule_of(step), step.storages.size()).value_or(StepContents{}));
  }
};

TEST_F(ScheduleFuzz, DamagedTextIsRefusedOrExecuted) {
  std::mt19937_64 random(3);
  int refusals = 0, executions = 0;
  constexpr int kTries = 1500;
  for (const char* policy :
       {"offload:what=activations,to=nvme,min_bytes=0", "offload:what=optimizer,to=host", "zero:stage=2,ranks=8"}) {
    const std::string text = good(policy);
    for (int i = 0; i < kTries; ++i) {
      Trace read;
      StepContents contents;
      if (refused(damaged(text, random), read, contents))
        ++refusals;
      else
        executions += executed(read, contents);
    }
  }
  EXPECT_GT(refusals, kTries);
  EXPECT_GT(executions, 0);
}

// Lines that are well formed, at places where they make no sense.
TEST_F(ScheduleFuzz, MovedAndRepeatedLinesAreRefusedOrExecuted) {
  std::vector<std::string> lines;
  std::istringstream in(good("offload:what=activations,to=host,min_bytes=0"));
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  std::mt19937_64 random(4);
  int accepted = 0;
  for (int i = 0; i < 1500; ++i) {
    std::vector<std::string> altered = lines;
    const std::size_t at = random() % altered.size(), to = random() % altered.size();
    if (i % 3 == 0) {
      std::swap(altered[at], altered[to]);
    } else {
      if (i % 3 == 1) altered.erase(altered.begin() + static_cast<std::ptrdiff_t>(at));
      if (i % 3 == 2) altered.insert(altered.begin() + static_cast<std::ptrdiff_t>(to), altered[at]);
      std::size_t ops = 0;  // let the last line count again, as a hostile author would
      for (const std::string& line : altered) ops += std::count(line.begin(), line.end(), '\t') == 17;
      altered.back() = "end\t" + std::to_string(ops);
    }
    std::string text;
    for (const std::string& line : altered) text += line + "\n";
    Trace read;
    StepContents contents;
    if (refused(text, read, contents)) continue;
    ++accepted;
    executed(read, contents);
  }
  EXPECT_GT(accepted, 100);
}

TEST_F(ScheduleFuzz, AnyTraceIsRefusedOrExecuted) {
  int schedules = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    try {
      const Trace schedule = schedule_of(random_trace(seed, 4 + seed % 40), {1e-6, 1});
      ++schedules;
      const std::string text = schedule_text(schedule);
      EXPECT_EQ(schedule_text(parse_schedule(text, "x")), text);
      executed(schedule);
    } catch (const UsageError& error) {
      const std::string sentence = error.what();
      EXPECT_NE(sentence.find("cannot be executed: "), std::string::npos) << sentence;
      EXPECT_EQ(sentence.back(), '.') << sentence;
    }
  }
  EXPECT_GT(schedules, 10);
}

TEST_F(ScheduleFuzz, NoiseIsRefused) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 500; ++i) {
    std::string noise = i % 2 ? "memwall schedule 1\n" : i % 4 ? "memwall schedule 2\n" : "";
    for (std::uint64_t n = random() % 300; n > 0; --n) noise.push_back(static_cast<char>(random()));
    Trace read;
    StepContents contents;
    EXPECT_TRUE(refused(noise, read, contents));
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
