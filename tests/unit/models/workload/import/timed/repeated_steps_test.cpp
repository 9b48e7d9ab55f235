// Are the steps of a window that nobody marked told where its operators come again, and only there?
#include "models/workload/import/timed/repeated_steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "models/workload/import/kineto/kineto_reader.h"
#include "models/workload/import/timed/timed_import.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Firsts = std::vector<std::size_t>;

// A letter is an operator, a capital one an optimizer's step; '|' behind it: autograd's thread works then.
RepeatedSteps steps_of(const std::string& text) {
  std::vector<StepOperator> operators;
  for (const char c : text) {
    if (c == '|')
      operators.back().before_backward = true;
    else
      operators.push_back({static_cast<std::uint32_t>(c), c >= 'A' && c <= 'Z', false});
  }
  return repeated_steps(operators);
}

TEST(RepeatedSteps, EndWithTheOptimizersStep) {
  EXPECT_EQ(steps_of("abc|Oabc|O").first, (Firsts{0, 4}));
  EXPECT_EQ(steps_of("abc|Oabc|Oabc|O").first, (Firsts{0, 4, 8}));
  EXPECT_EQ(steps_of("xyabc|Oabc|O").first, (Firsts{2, 6})) << "behind what sets the program up";
  EXPECT_EQ(steps_of("ab|ab|Oab|ab|O").first, (Firsts{0, 5})) << "micro-batches are no steps";
  EXPECT_EQ(steps_of("a|Pb|Qa|Pb|Qa|Pb|Q").first, (Firsts{0, 4, 8})) << "two optimizers take turns";
}

TEST(RepeatedSteps, OfOneOptimizersStepThereIsOne) {
  EXPECT_TRUE(steps_of("ab|ab|ab|O").first.empty());
  EXPECT_EQ(steps_of("ab|ab|ab|O").rounds, 1u);
  EXPECT_EQ(steps_of("ab").rounds, 0u);
  EXPECT_EQ(steps_of("").rounds, 0u);
}

TEST(RepeatedSteps, ThatAreNotAlikeAreCountedAndNotToldApart) {
  EXPECT_TRUE(steps_of("abc|Oabd|Oabc|O").first.empty());
  EXPECT_EQ(steps_of("abc|Oabd|Oabc|O").rounds, 3u);
  EXPECT_TRUE(steps_of("bc|Oabc|Oabc|O").first.empty()) << "the first one has begun before";
  EXPECT_TRUE(steps_of("abcdef|Oabcdef|Oabc").first.empty()) << "half of another one stands behind the last";
}

TEST(RepeatedSteps, WithoutAnOptimizerEachRoundHasABackwardPass) {
  EXPECT_EQ(steps_of("ab|cab|cab|c").first, (Firsts{0, 3, 6}));
  EXPECT_EQ(steps_of("xab|ab|ab|").first, (Firsts{1, 3, 5}));
  EXPECT_TRUE(steps_of("ab|ab|").first.empty()) << "two may be micro-batches of one step";
  EXPECT_EQ(steps_of("ab|ab|").rounds, 2u);
  EXPECT_TRUE(steps_of("abababab").first.empty()) << "layers of an inference come again, too";
  EXPECT_TRUE(steps_of("ab|ac|ab|").first.empty());
}

// Any number of equal rounds behind any beginning: their firsts are where they were put.
TEST(RepeatedSteps, AreFoundWhereTheyWerePut) {
  for (std::size_t before = 0; before < 4; ++before)
    for (std::size_t length = 1; length < 5; ++length)
      for (std::size_t count = 2; count < 6; ++count) {
        std::string text(before, 'x'), round = std::string("abcd").substr(0, length) + "|O";
        Firsts expected;
        for (std::size_t i = 0; i < count; ++i) {
          expected.push_back(before + i * (length + 1));
          text += round;
        }
        EXPECT_EQ(steps_of(text).first, expected) << text;
      }
}

// --- captures: each iteration a forward and a backward kernel, and the optimizer's

class Program {
 public:
  void iteration(const std::string& forward, bool optimizer) {
    operation(forward, "cpu_op", 100);
    operation("autograd::engine::evaluate_function: MmBackward0", "cpu_op", 101);
    if (optimizer) operation("Optimizer.step#SGD.step", "user_annotation", 100);
  }
  void operation(const std::string& name, const std::string& category, int thread) {
    const std::string id = std::to_string(++number_), host = ",\"tid\":" + std::to_string(thread);
    add(category, name, host, 0, 90, "\"External id\":" + id);
    add("cuda_runtime", "cudaLaunchKernel", host, 10, 10, "\"correlation\":" + id);
    add("kernel", "k", ",\"tid\":7", 25, 50, "\"device\":0,\"stream\":7,\"correlation\":" + id);
    now_ += 100;
  }
  void wait(int duration) { now_ += duration; }

  ImportedTrace import() const {
    ScratchFolder folder;
    const auto path = folder / "window.json";
    std::ofstream(path) << "{\"schemaVersion\":1,\"traceEvents\":[" << events_ << "]}";
    return import_timed_capture(read_kineto(path));
  }

 private:
  void add(const std::string& category, const std::string& name, const std::string& thread, int after, int duration,
           const std::string& arguments) {
    events_ += (events_.empty() ? "" : ",\n") + (R"({"ph":"X","cat":")" + category) + R"(","name":")" + name +
               R"(","pid":1)" + thread + ",\"ts\":" + std::to_string(1'000'000 + now_ + after) +
               ",\"dur\":" + std::to_string(duration) + ",\"args\":{" + arguments + "}}";
  }
  std::string events_;
  int now_ = 0, number_ = 0;
};

bool notes(const ImportedTrace& t, const std::string& words) {
  return std::ranges::any_of(t.trace.notes, [&](const std::string& n) { return n.find(words) != std::string::npos; });
}

TEST(RepeatedSteps, OfAWindowAreItsSteps) {
  Program p;
  p.operation("aten::randn", "cpu_op", 100);
  for (int i = 0; i < 4; ++i) p.iteration("aten::mm", true);
  const ImportedTrace t = p.import();
  ASSERT_EQ(t.trace.steps.size(), 4u);
  EXPECT_EQ(t.trace.steps[0].name, "iteration 1");
  EXPECT_EQ(t.trace.steps[3].name, "iteration 4");
  EXPECT_TRUE(notes(t, "its operators come 4 times alike")) << "what nobody marked is said to be concluded";
  ASSERT_EQ(t.captured.steps.size(), 4u);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(t.captured.steps[i].host_time, microseconds(300)) << i;
  for (const Step& step : t.trace.steps)
    EXPECT_EQ(std::count_if(t.trace.ops.begin() + step.first, t.trace.ops.begin() + step.last,
                            [](const Op& op) { return op.kind == OpKind::kernel; }),
              3);
}

TEST(RepeatedSteps, ThatDifferLeaveOneWindowThatSaysHowManyItHolds) {
  Program p;
  for (int i = 0; i < 3; ++i) p.iteration(i == 1 ? "aten::bmm" : "aten::mm", true);
  const ImportedTrace t = p.import();
  ASSERT_EQ(t.trace.steps.size(), 1u);
  EXPECT_EQ(t.trace.steps[0].name, "window of 3 iterations");
  EXPECT_TRUE(notes(t, "all of it counts as one, with 3 optimizer steps")) << t.trace.notes.back();
}

TEST(RepeatedSteps, OfOneIterationAreNotSpokenOf) {
  Program p;
  p.iteration("aten::mm", true);
  const ImportedTrace t = p.import();
  ASSERT_EQ(t.trace.steps.size(), 1u);
  EXPECT_EQ(t.trace.steps[0].name, "window of one iteration");
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
