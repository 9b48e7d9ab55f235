// Does any damaged Kineto capture crash, hang, or become a trace that is not sound?
#include <gtest/gtest.h>

#include <random>

#include "models/workload/import/inference/inferred_dataflow.h"
#include "models/workload/import/kineto/kineto_reader.h"
#include "models/workload/import/kineto/kineto_step.h"
#include "models/workload/import/ranks/rank_join.h"
#include "models/workload/import/timed/timed_import.h"
#include "sim/engine/simulation.h"
#include "sim/error.h"
#include "sim/trace/trace_check.h"
#include "tests/support/batch_capture.h"
#include "tests/support/gzip.h"
#include "tests/support/profile_writer.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/small_capture.h"
#include "tests/support/test_machine.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

using Random = std::mt19937;

std::size_t below(Random& random, std::size_t n) {
  return std::uniform_int_distribution<std::size_t>(0, n - 1)(random);
}

// Where a member's value begins that is not the document's own, and where it ends.
std::pair<std::size_t, std::size_t> some_value(const std::string& text, Random& random) {
  const std::size_t events = text.find("\"traceEvents\"") + 16;
  const std::size_t colon = text.find("\":", events + below(random, text.size() - events - 200));
  if (colon == std::string::npos) return {text.size(), text.size()};
  const std::size_t begin = colon + 2;
  std::size_t end = begin;
  if (text[begin] == '"')
    end = text.find('"', begin + 1) + 1;
  else
    while (end < text.size() && text[end] != ',' && text[end] != '}' && text[end] != ']') ++end;
  return {begin, end};
}

std::string mutated(std::string text, Random& random) {
  static const char* kOdd[] = {"-1",
                               "0",
                               "1e308",
                               "18446744073709551615",
                               "-9223372036854775808",
                               "9223372036854775807",
                               "null",
                               "\"x\"",
                               "[]",
                               "{}",
                               "1669783687001200",
                               "864000000000000",
                               "0.0001",
                               "true",
                               "\"stream 9\"",
                               "\"cudaGraphLaunch\"",
                               "\"kernel\"",
                               "\"cuda_sync\"",
                               "\"Stream Wait Event\"",
                               "7",
                               "101",
                               "2"};
  const int kind = static_cast<int>(below(random, 6));
  switch (kind) {
    case 0:
      return text.substr(0, below(random, text.size()));
    case 1:
      for (std::size_t n = 1 + below(random, 4); n > 0; --n)
        text[below(random, text.size())] = static_cast<char>(below(random, 256));
      return text;
    case 2: {  // a line twice, or not at all
      const std::size_t begin = text.find('\n', below(random, text.size() - 300));
      const std::size_t end = text.find('\n', begin + 1);
      if (end == std::string::npos) return text;
      const std::string line = text.substr(begin, end - begin);
      return below(random, 2) ? text.insert(begin, line) : text.erase(begin, end - begin);
    }
    default:
      for (std::size_t n = 1 + below(random, 5); n > 0; --n) {
        const auto [begin, end] = some_value(text, random);
        if (begin < text.size()) text.replace(begin, end - begin, kOdd[below(random, std::size(kOdd))]);
      }
      return text;
  }
}

// What becomes of a file: 0 refused, 1 a sound trace that runs.
int outcome(const std::filesystem::path& path) {
  try {
    const TimedCapture capture = read_kineto(path);
    ImportedTrace imported = import_timed_capture(capture);
    infer_dataflow(imported, capture);
    EXPECT_TRUE(check(imported.trace).empty());
    SimulationOptions options;
    options.allocator = "ideal";
    const SimulationResult result = simulate(imported.trace, test_machine(), options);
    EXPECT_EQ(result.records.size(), imported.trace.ops.size());
    return 1;
  } catch (const InputError& error) {
    EXPECT_GT(std::string(error.what()).size(), 20u);
    return 0;
  }
}

TEST(KinetoFuzz, MutatedCapturesAreRefusedOrSound) {
  const ScratchFolder folder;
  Random random(20240607);
  int counts[2] = {};
  for (int i = 0; i < 800; ++i) {
    const std::string text = mutated(small_capture(), random);
    write_content(folder / "mutated.json", text);
    SCOPED_TRACE("mutation " + std::to_string(i));
    ++counts[outcome(folder / "mutated.json")];
    if (::testing::Test::HasFailure()) {
      write_content(std::filesystem::temp_directory_path() / "memwall-kineto-fuzz-failure.json", text);
      break;
    }
  }
  // Both ends were reached often, so that the test has looked at both.
  EXPECT_GT(counts[0], 100);
  EXPECT_GT(counts[1], 100);
}

// Operators with shapes, memory events and a backward pass, so that there is something to infer.
TEST(KinetoFuzz, MutatedProfilesWithShapesAndMemoryAreRefusedOrSound) {
  ProfileWriter p(16384);
  p.run("aten::linear", "[[32,32],[32,32]]", R"(["float","float"])", 1, 4096, 1);
  p.run("aten::relu_", "[[32,32]]", R"(["float"])", 2).run("aten::t", "[[32,32]]", R"(["float"])", 3);
  p.run("aten::ones_like", "[[32,32]]", R"(["float"])", -1, 4096, 2).on_thread(2);
  p.begin("autograd::engine::evaluate_function: ReluBackward0", "", "", 2)
      .begin("ReluBackward0", "[[32,32]]", R"(["float"])", 2);
  p.run("aten::threshold_backward", "[[32,32],[32,32]]", R"(["float","float"])", -1, 4096, 3)
      .end()
      .memory(1, -4096)
      .end();
  p.begin("torch::autograd::AccumulateGrad", "[[32,32]]", R"(["float"])").end();
  p.on_thread(1).begin("Optimizer.step#SGD.step", "", "", -1, "", "user_annotation");
  p.run("aten::_foreach_add_", "[[[32,32]],[[32,32]]]", R"(["TensorList","TensorList"])").end();
  const std::string whole = p.text() + std::string(300, '\n');
  const ScratchFolder folder;
  Random random(20281128);
  int counts[2] = {};
  for (int i = 0; i < 600; ++i) {
    const std::string text = mutated(whole, random);
    write_content(folder / "mutated.json", text);
    SCOPED_TRACE("mutation " + std::to_string(i));
    ++counts[outcome(folder / "mutated.json")];
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_GT(counts[0], 50);
  EXPECT_GT(counts[1], 50);
}

// Batches of sends and receives of three ranks, one or all of them damaged.
TEST(KinetoFuzz, MutatedBatchesOfRanksAreRefusedOrSound) {
  const ScratchFolder folder;
  std::vector<std::string> whole;
  for (int r = 0; r < 3; ++r) {
    BatchCapture rank(r, 3);
    for (int at = 100; at < 500; at += 100)
      rank.batch({send_to((r + 1) % 3), receive_from((r + 2) % 3), send_to((r + 2) % 3, at)}, at, at + 50);
    rank.all_reduce(1000, 1010);
    whole.push_back(rank.text() + std::string(300, '\n'));
  }
  Random random(20281129);
  int refused = 0, joined = 0;
  for (int i = 0; i < 400 && !::testing::Test::HasFailure(); ++i) {
    SCOPED_TRACE("mutation " + std::to_string(i));
    const bool all = below(random, 4) == 0;
    try {
      std::vector<ImportedStep> steps;
      for (std::size_t r = 0; r < 3; ++r) {
        const std::string name = "rank" + std::to_string(r) + ".json";
        write_content(folder / name, all || r == 1 ? mutated(whole[r], random) : whole[r]);
        steps.push_back(import_kineto(folder / name, ImportSettings{}));
      }
      const ImportedStep step = joined_steps(std::move(steps));
      EXPECT_TRUE(check(step.trace).empty());
      SimulationOptions options;
      options.allocator = "ideal";
      simulate(step.trace, test_machine(), options);
      ++joined;
    } catch (const InputError& error) {
      EXPECT_GT(std::string(error.what()).size(), 20u);
      ++refused;
    } catch (const UsageError& error) {
      EXPECT_GT(std::string(error.what()).size(), 20u);
      ++refused;
    }
  }
  EXPECT_GT(refused, 50);
  EXPECT_GT(joined, 50);
}

TEST(KinetoFuzz, DamagedGzipIsRefusedOrSound) {
  const ScratchFolder folder;
  Random random(7);
  const std::string packed = gzipped(small_capture());
  int refused = 0;
  for (int i = 0; i < 300; ++i) {
    std::string text = packed;
    if (below(random, 2))
      text.resize(2 + below(random, text.size() - 2));
    else
      text[2 + below(random, text.size() - 2)] = static_cast<char>(below(random, 256));
    write_content(folder / "mutated.json.gz", text);
    refused += outcome(folder / "mutated.json.gz") == 0;
  }
  EXPECT_GT(refused, 200);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
