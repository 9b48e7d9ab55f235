// Does `memwall run` take another batch, a second size and the search for the largest batch, and say exactly what it
// should of them?
//
// Exact outputs stand in tests/golden/expected. After a deliberate change: run this program with
// MEMWALL_UPDATE_GOLDEN=1 and read the difference before committing it. Times are left out: they are the cost model's.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>

#include "tests/support/command.h"
#include "tests/support/golden.h"
#include "tests/support/scratch_folder.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

namespace fs = std::filesystem;

// A perceptron of one hidden layer: 64 MiB of weights with AdamW's states, 4 MiB of activations per sample.
std::string capture_at(int batch) {
  constexpr std::int64_t kWidth = 4096, kRows = 128;
  const std::int64_t n = batch, tokens = n * kRows, weight = kWidth * kWidth, activation = tokens * kWidth;
  std::string text = fmt::format(
      R"({{"format":"memwall-capture","version":1,"name":"perceptron","mode":"fake","device":"cuda","program":{{}},"choices":{{}},"samples_per_step":{},"tokens_per_step":{}}})"
      "\n",
      n, tokens);
  const auto storage = [&](int id, std::int64_t bytes, const char* kind, const char* label, bool preexisting) {
    text += fmt::format(R"({{"storage":{},"bytes":{},"kind":"{}","place":"hbm","label":"{}"{}}})", id, bytes, kind,
                        label, preexisting ? R"(,"preexisting":true)" : "");
    text += "\n";
    if (!preexisting) text += fmt::format("{{\"alloc\":{}}}\n", id);
  };
  const auto tensor = [](std::int64_t rows, std::int64_t columns, int id) {
    return fmt::format(R"([[{},{}],"bf16",{}])", rows, columns, id);
  };
  const auto op = [&](const std::string& name, const char* phase, const std::string& uses, const std::string& inputs,
                      const std::string& outputs, double flops, std::int64_t bytes, const char* c) {
    text += fmt::format(
        R"({{"op":"aten::{}","module":"layers.0","phase":"{}",{},"inputs":[{}],"outputs":[{}],"flops":{},"bytes":{},"class":"{}","dtype":"bf16"}})",
        name, phase, uses, inputs, outputs, flops, bytes, c);
    text += "\n";
  };
  storage(0, 2 * weight, "parameter", "layers.0.weight", true);
  storage(1, 2 * weight, "optimizer_state", "layers.0.weight.exp_avg", true);
  storage(2, 2 * activation, "input", "x", true);
  const double flops = 2.0 * static_cast<double>(activation) * kWidth;
  const std::int64_t moved = 4 * activation + 2 * weight;
  storage(3, 2 * activation, "activation", "aten::mm", false);
  op("mm", "forward", R"("reads":[2,0],"writes":[3])", tensor(tokens, kWidth, 2) + "," + tensor(kWidth, kWidth, 0),
     tensor(tokens, kWidth, 3), flops, moved, "gemm");
  storage(4, 2 * activation, "activation", "aten::gelu", false);
  op("gelu", "forward", R"("reads":[3],"writes":[4])", tensor(tokens, kWidth, 3), tensor(tokens, kWidth, 4), 0,
     4 * activation, "elementwise");
  text += "{\"loss\":true}\n";
  storage(5, 2 * activation, "workspace", "aten::gelu_backward", false);
  op("gelu_backward", "backward", R"("reads":[4,3],"writes":[5])",
     tensor(tokens, kWidth, 4) + "," + tensor(tokens, kWidth, 3), tensor(tokens, kWidth, 5), 0, 6 * activation,
     "elementwise");
  text += "{\"free\":4}\n{\"free\":3}\n";
  storage(6, 2 * weight, "gradient", "layers.0.weight.grad", false);
  op("mm", "backward", R"("reads":[5,2],"writes":[6])", tensor(kWidth, tokens, 5) + "," + tensor(tokens, kWidth, 2),
     tensor(kWidth, kWidth, 6), flops, moved, "gemm");
  text += "{\"free\":5}\n";
  op("_foreach_add_", "optimizer", R"("reads":[0,1,6],"writes":[0,1])", "", "", 0, 10 * weight, "optimizer");
  text += "{\"free\":6}\n";
  return text;
}

class BatchCommands : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const int batch : {2, 4, 8}) write_content(folder_ / fmt::format("{}.mwc", batch), capture_at(batch));
  }

  CommandOutcome run(const std::string& arguments) {
    return run_command("'" MEMWALL_PROGRAM "' run " + arguments + " --machine h100-sxm-80gb", folder_.path());
  }

  // What is said in CSV, without times.
  static std::string without_times(const std::string& csv) {
    std::istringstream lines(csv);
    std::string kept;
    for (std::string line; std::getline(lines, line);)
      if (line.find(",step_time_s,") == std::string::npos && line.find(",samples_per_second,") == std::string::npos &&
          line.find("A step then takes") == std::string::npos)
        kept += line + "\n";
    return kept;
  }

  static void equals_golden(const std::string& name, const std::string& text) { expect_golden(name + ".txt", text); }

  // Times, work and the memory of the GPU, without what the step was before policies.
  std::string result_of(const std::string& arguments) {
    const CommandOutcome o = run(arguments + " --format json --no-provenance");
    EXPECT_EQ(o.code, 0) << o.err;
    const std::size_t begin = o.out.find("\"fits\""), end = o.out.find("\"fragmentation\"");
    EXPECT_NE(begin, std::string::npos);
    EXPECT_NE(end, std::string::npos);
    return o.out.substr(begin, end - begin);
  }

  void refuses(const std::string& arguments, const std::string& sentence) {
    const CommandOutcome o = run(arguments);
    EXPECT_EQ(o.code, 2) << o.err;
    EXPECT_EQ(o.out, "");
    EXPECT_NE(o.err.find(sentence), std::string::npos) << "expected: " << sentence << "\nfound: " << o.err;
  }

  ScratchFolder folder_;
};

TEST_F(BatchCommands, AnotherBatchIsTheCaptureAtThatBatch) {
  EXPECT_EQ(result_of("2.mwc --policy batch:8"), result_of("8.mwc"));
  EXPECT_EQ(result_of("2.mwc --second-size 4.mwc --policy batch:8"), result_of("8.mwc"));
  EXPECT_EQ(result_of("4.mwc --second-size 2.mwc --policy batch:to=8"), result_of("8.mwc"));
  EXPECT_NE(result_of("4.mwc"), result_of("8.mwc"));
}

TEST_F(BatchCommands, TheLargestBatchAndWhatStopsIt) {
  const std::string search = "2.mwc --find-largest-batch --set gpu.hbm.capacity=2GB --format csv";
  const CommandOutcome o = run(search);
  EXPECT_EQ(o.code, 0) << o.err;
  equals_golden("largest_batch_csv", without_times(o.out));
  const CommandOutcome two = run(search + " --second-size 4.mwc");
  EXPECT_EQ(without_times(two.out), without_times(o.out));
  // A step that does not say how many samples it has is told with from.
  std::string silent = capture_at(2);
  silent.erase(silent.find(R"("samples_per_step":2,)"), std::string(R"("samples_per_step":2,)").size());
  write_content(folder_ / "silent.mwc", silent);
  const std::string same = search.substr(std::string("2.mwc").size());
  EXPECT_EQ(without_times(run("silent.mwc" + same + " --policy batch:from=2").out), without_times(o.out));
  // Whoever follows a refusal's advice is not refused again.
  const CommandOutcome unsaid = run("silent.mwc" + same);
  const CommandOutcome said_twice = run("silent.mwc" + same + " --policy batch:to=1,from=2");
  EXPECT_EQ(unsaid.code, 2);
  EXPECT_NE(unsaid.err.find("expected --policy batch:from=N beside it"), std::string::npos) << unsaid.err;
  EXPECT_EQ(said_twice.code, 2);
  EXPECT_NE(said_twice.err.find("instead of --policy batch:to=1,from=2 expected --policy batch:from=2."),
            std::string::npos)
      << said_twice.err;
  const CommandOutcome inspected = run_command("'" MEMWALL_PROGRAM "' inspect silent.mwc", folder_.path());
  EXPECT_NE(inspected.out.find("yes, with from=N"), std::string::npos) << inspected.out;
  EXPECT_NE(inspected.out.find("the step does not say how many samples it has"), std::string::npos);
  EXPECT_EQ(run_command("'" MEMWALL_PROGRAM "' inspect 2.mwc", folder_.path()).out.find("with from=N"),
            std::string::npos);
}

TEST_F(BatchCommands, PoliciesAndAllocatorsDecideToo) {
  const auto largest = [&](const std::string& more) {
    const CommandOutcome o = run("2.mwc --find-largest-batch --set gpu.hbm.capacity=2GB --format csv" + more);
    EXPECT_EQ(o.code, 0) << o.err;
    const std::string before = "largest_batch,largest,value,";
    const std::size_t at = o.out.find(before);
    EXPECT_NE(at, std::string::npos) << o.out;
    return at == std::string::npos ? 0 : std::stoi(o.out.substr(at + before.size()));
  };
  const int plain = largest("");
  EXPECT_GT(largest(" --policy offload:what=optimizer,to=host"), plain);
  EXPECT_GE(largest(" --allocator ideal"), plain);
}

TEST_F(BatchCommands, WhatFitsIsWhatRunSays) {
  const CommandOutcome o = run("2.mwc --find-largest-batch --set gpu.hbm.capacity=2GB --format csv");
  const auto samples = [&](const std::string& row) {
    const std::string before = "largest_batch," + row + ",value,";
    return std::stoi(o.out.substr(o.out.find(before) + before.size()));
  };
  const auto code = [&](int n) {
    return run(fmt::format("2.mwc --policy batch:{} --set gpu.hbm.capacity=2GB", n)).code;
  };
  EXPECT_EQ(code(samples("largest")), 0);
  EXPECT_EQ(code(samples("refused")), 3);
  EXPECT_EQ(samples("refused"), samples("largest") + 1);
}

TEST_F(BatchCommands, BeginsWithAnAnswer) {
  const CommandOutcome o = run("2.mwc --find-largest-batch --set gpu.hbm.capacity=2GB");
  EXPECT_NE(o.out.find("\n  The largest batch that fits is "), std::string::npos) << o.out;
  EXPECT_LT(o.out.find("The largest batch"), o.out.find("The sizes that were tried"));
  const std::string zero =
      run("2.mwc --find-largest-batch --set gpu.hbm.capacity=2GB --policy zero:stage=1,ranks=8").out;
  EXPECT_NE(zero.find(" per step and rank, "), std::string::npos) << zero;
  EXPECT_NE(zero.find("samples per step and rank that fit"), std::string::npos) << zero;
  const std::string json = run("2.mwc --find-largest-batch --set gpu.hbm.capacity=2GB --format json").out;
  EXPECT_TRUE(json.starts_with("{\n  \"trace\": \"")) << json.substr(0, 200);
  EXPECT_NE(json.find("\"machine\": \"h100-sxm-80gb\",\n  \"overrides\": [\"gpu.hbm.capacity=2GB\"]"),
            std::string::npos)
      << json;
  EXPECT_NE(json.find("\"verdict\": [\n    \"The largest batch that fits is "), std::string::npos) << json;
  EXPECT_NE(json.find("\"samples_per_second\": null"), std::string::npos) << "of what does not fit";
}

TEST_F(BatchCommands, NotEvenOneSample) {
  const CommandOutcome o = run("2.mwc --find-largest-batch --set gpu.hbm.capacity=650MB --format json");
  EXPECT_EQ(o.code, 3) << o.err;
  EXPECT_NE(o.err.find("does not fit with 1 sample either"), std::string::npos) << o.err;
  EXPECT_NE(o.out.find("\"stops\""), std::string::npos);
}

TEST_F(BatchCommands, WhatHasNoMeaningIsRefused) {
  refuses("2.mwc --second-size 4.mwc", "--second-size: which size is wanted is not said");
  refuses("2.mwc --second-size 4.mwc --policy batch:tokens=64", "differ in samples");
  refuses("2.mwc --second-size 2.mwc --policy batch:8", "a line needs two sizes");
  refuses("2.mwc --policy batch:tokens=64", "give a capture of the same program at another length");
  refuses("2.mwc --find-largest-batch --policy batch:4", "leave out --policy batch:4");
  refuses("2.mwc --find-largest-batch -o run.h5", "leave out -o");
}

// Real steps: a batch twice as large needs more memory, the same batch changes nothing.
TEST_F(BatchCommands, SampleCapturesTakeAnotherBatch) {
  const fs::path samples = fs::path(MEMWALL_SOURCE) / "traces/samples/captures";
  for (const auto& [name, batch] : {std::pair{"gpt2_124m", 8}, {"resnet50", 128}, {"bert_large", 16}}) {
    SCOPED_TRACE(name);
    const std::string file = (samples / (std::string(name) + ".mwc.gz")).string();
    EXPECT_EQ(result_of(fmt::format("{} --policy batch:{}", file, batch)), result_of(file));
    const CommandOutcome o = run(fmt::format("{} --policy batch:{} --no-provenance", file, 2 * batch));
    EXPECT_TRUE(o.code == 0 || o.code == 3) << o.err;
    EXPECT_NE(o.out.find(fmt::format("batch: {} to {} samples per step", batch, 2 * batch)), std::string::npos);
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
