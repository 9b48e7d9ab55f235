// How near do predictions come to step times and peaks that others published? Skipped without the tables.
#include <gtest/gtest.h>
#include <simdjson.h>

#include <sstream>

#include "tests/support/command.h"
#include "tests/support/shared_data.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

class PublishedAccuracy : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!shared_data() || !std::filesystem::is_directory(*shared_data() / "published"))
      GTEST_SKIP() << "no published tables here";
  }

  static std::string validate(const std::string& options, const std::string& environment = "") {
    const CommandOutcome outcome = run_command(environment + " " + MEMWALL_PROGRAM + " validate --published '" +
                                                   (*shared_data() / "published").string() + "' " + options,
                                               std::filesystem::temp_directory_path());
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.out;
  }

  // Median error of a table's metric; -1 where it has no row.
  static double median_error(const std::string& json, std::string_view table, std::string_view metric) {
    simdjson::dom::parser parser;
    for (const simdjson::dom::element row : parser.parse(json)["errors"])
      if (std::string_view(row["table"]) == table && std::string_view(row["metric"]) == metric)
        return row["median_error"];
    return -1;
  }
};

constexpr const char* kTorchtune = "torchtune_llama32_3b_ablation_a100";

// The page's rows are what the command prints: no figure in it was typed. A model that changes shows here;
// `memwall validate --published FOLDER --markdown-docs` makes the page anew. Tables may have got more rows since.
TEST_F(PublishedAccuracy, EveryRowOfThePageInTheDocsIsPrinted) {
  const std::string printed = validate("--markdown-docs");
  std::istringstream page(content_of(std::filesystem::path(MEMWALL_SOURCE) / "docs" / "accuracy.md"));
  std::size_t rows = 0;
  for (std::string line; std::getline(page, line);) {
    if (line.find(" % |") == std::string::npos || line.find(" | s | ") == std::string::npos) continue;
    ++rows;
    EXPECT_NE(printed.find("\n" + line + "\n"), std::string::npos) << line;
  }
  EXPECT_GE(rows, 25u);
}

// The aims where nothing is fitted: median under 10 % in time and under 5 % in peak memory.
TEST_F(PublishedAccuracy, MediansOfEveryTableAreWithinTheirAims) {
  simdjson::dom::parser parser;
  const std::string json = validate("--format json");
  std::size_t tables = 0;
  for (const simdjson::dom::element row : parser.parse(json)["errors"]) {
    if (std::uint64_t(row["rows"]) == 0 || row["aim_of_the_median"].is_null()) continue;
    ++tables;
    EXPECT_LE(double(row["median_error"]), double(row["aim_of_the_median"])) << row["table"] << ", " << row["metric"];
  }
  EXPECT_GE(tables, 5u);
}

// Of jobs under FSDP and DeepSpeed, the judged half: what was reached. A table that misses its aim is asserted to miss
// it no further; docs/accuracy.md says why.
TEST_F(PublishedAccuracy, JudgedRowsAreAsNearAsTheyWere) {
  struct Reached {
    std::string_view table;
    double median, p90, order;
    std::uint64_t rows;
  };
  constexpr Reached kReached[] = {
      {"deepspeed_azure_zero3_a100", 0.075, 0.227, 0.995, 14},
      {"internevo_7b_a100_throughput", 0.050, 0.248, 0.942, 6},
      {"internevo_7b_a100_zero1_scope", 0.012, 0.016, 0.800, 4},
      {"h200_llama31_8b_zero3_offload_mlengineering", 0.078, 0.230, 1.000, 3},
      {"mosaic_llmfoundry_mpt_throughput", 0.045, 0.100, 0.995, 32},
      {"torchtitan_llama_perf_memory", 0.062, 0.188, 1.000, 4},
      {"answerai_fsdp_qlora", 0.095, 0.345, 0.828, 6},
      {"deepspeed_zero_tutorial_runs", 0.670, 0.670, 0.866, 3},
      {"deepspeed_zero_offload_tflops_v100", 0, 0, 0.928, 0},
  };
  simdjson::dom::parser parser;
  const std::string json = validate("--format json");
  std::size_t tables = 0;
  for (const simdjson::dom::element row : parser.parse(json)["judged"])
    for (const Reached& reached : kReached) {
      if (std::string_view(row["table"]) != reached.table || std::string_view(row["half"]) == "fitted") continue;
      ++tables;
      SCOPED_TRACE(reached.table);
      EXPECT_GE(std::uint64_t(row["rows"]), reached.rows);
      if (reached.rows > 0) {
        EXPECT_LE(double(row["median_error"]), reached.median);
        EXPECT_LE(double(row["p90_error"]), reached.p90);
      }
      EXPECT_GE(double(row["order"]), reached.order);
    }
  EXPECT_EQ(tables, std::size(kReached));
}

// Negative control of the same: with a tenth of the network's rate the judged rows of Azure's table are far off.
TEST_F(PublishedAccuracy, AnotherNetworkIsSeenInTheJudgedRows) {
  const ScratchFolder machines;
  const std::filesystem::path shipped = std::filesystem::path(MEMWALL_SOURCE) / "models" / "hw" / "machines";
  for (const auto& file : std::filesystem::directory_iterator(shipped)) {
    std::string text = content_of(file.path());
    const std::string rate = "\"192 GB/s\"";
    for (std::size_t at = text.find(rate); at != std::string::npos; at = text.find(rate, at))
      text.replace(at, rate.size(), "\"19.2 GB/s\"");
    write_content(machines / file.path().filename().string(), text);
  }
  const std::string environment = "MEMWALL_MACHINES='" + machines.path().string() + "'";
  const std::string json = validate("--format json --table deepspeed_azure_zero3_a100", environment);
  simdjson::dom::parser parser;
  for (const simdjson::dom::element row : parser.parse(json)["judged"])
    EXPECT_GT(double(row["median_error"]), 0.5) << row["half"];
}

TEST_F(PublishedAccuracy, EachTechniqueOfTheAblationChangesTimeAndMemoryAsMeasured) {
  simdjson::dom::parser parser;
  const std::string json = validate("--format json --table " + std::string(kTorchtune));
  std::size_t steps = 0;
  for (const simdjson::dom::element step : parser.parse(json)["ablation"]) {
    const std::string_view name = step["step"];
    if (name != "+compile" && name != "+chunked cross entropy" && name != "+activation checkpointing") continue;
    ++steps;
    EXPECT_EQ(std::string_view(step["same_direction"]), "yes") << step["step"] << ", " << step["metric"];
  }
  EXPECT_GE(steps, 6u);
}

// Negative control: with half of the tensor cores' rate the times are off, and the memory is not.
TEST_F(PublishedAccuracy, HalfTheRateOfProductsIsSeen) {
  const ScratchFolder machines;
  const std::filesystem::path shipped = std::filesystem::path(MEMWALL_SOURCE) / "models" / "hw" / "machines";
  for (const auto& file : std::filesystem::directory_iterator(shipped)) {
    std::string text = content_of(file.path());
    const std::string rate = "312 TFLOP/s";
    for (std::size_t at = text.find(rate); at != std::string::npos; at = text.find(rate, at))
      text.replace(at, rate.size(), "156 TFLOP/s");
    write_content(machines / file.path().filename().string(), text);
  }
  const std::string environment = "MEMWALL_MACHINES='" + machines.path().string() + "'";
  const std::string json = validate("--format json --table " + std::string(kTorchtune), environment);
  EXPECT_GT(median_error(json, kTorchtune, "step time"), 0.25);
  EXPECT_LT(median_error(json, kTorchtune, "peak active"), 0.05);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
