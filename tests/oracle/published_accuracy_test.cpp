// How near do predictions come to step times and peaks that others published? Skipped without the tables.
#include <gtest/gtest.h>
#include <simdjson.h>

#include <cstdio>
#include <iterator>
#include <set>
#include <sstream>

#include "sim/human_text.h"
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
};

// Median error of a table's peaks; -1 where it has none.
double peak_error(const std::string& json, std::string_view table) {
  simdjson::dom::parser parser;
  for (const simdjson::dom::element row : parser.parse(json)["errors"])
    if (std::string_view(row["table"]) == table) return row["median_error"];
  return -1;
}
// Of its judged step times.
double time_error(const std::string& json, std::string_view table) {
  simdjson::dom::parser parser;
  for (const simdjson::dom::element row : parser.parse(json)["judged"])
    if (std::string_view(row["table"]) == table && std::string_view(row["half"]) == "judged")
      return row["median_error"];
  return -1;
}

constexpr const char* kTorchtune = "torchtune_llama32_3b_ablation_a100";

// The page's rows are what the command prints: no figure in it was typed. A model that changes shows here;
// `memwall validate --published FOLDER --markdown-docs` makes the page anew. Tables may have got more rows since.
void every_row_of_the_page_is_printed(const std::string& json) {
  simdjson::dom::parser parser;
  std::set<std::string> printed;
  for (const simdjson::dom::element row : parser.parse(json)["published"]) {
    if (std::string_view(row["unit"]) != "s") continue;
    std::string line = "|";
    for (const char* text : {"table", "half", "row", "metric", "unit"})
      line += " " + std::string(std::string_view(row[text])) + " |";
    for (const char* seconds : {"measured", "predicted", "low", "high"})
      line += " " + (row[seconds].is_null() ? "-" : human_time(double(row[seconds]))) + " |";
    char error[32];
    std::snprintf(error, sizeof error, " %+.1f %% |", 100 * double(row["error"]));
    line += error;
    printed.insert(line);
  }
  std::istringstream page(content_of(std::filesystem::path(MEMWALL_SOURCE) / "docs" / "accuracy.md"));
  std::size_t rows = 0;
  for (std::string line; std::getline(page, line);) {
    if (line.find(" % |") == std::string::npos || line.find(" | s | ") == std::string::npos) continue;
    ++rows;
    const auto same = printed.lower_bound(line);  // the line goes on with errors
    EXPECT_TRUE(same != printed.begin() && line.starts_with(*std::prev(same))) << line;
  }
  EXPECT_GE(rows, 25u);
}

// What peaks were reached, in the statistic that the table has.
void peaks_are_as_near_as_they_were(const std::string& json) {
  EXPECT_LE(peak_error(json, kTorchtune), 0.006);
  EXPECT_LE(peak_error(json, "torchtune_llama31_recipes"), 0.047);
  EXPECT_LE(peak_error(json, "bloom176b_prequel_a100_grid"), 0.034);
  EXPECT_LE(peak_error(json, "qwen_finetune_memory_time_a100"), 0.024);
  EXPECT_LE(peak_error(json, "h200_llama31_8b_zero3_offload_mlengineering"), 0.038);
  EXPECT_LE(peak_error(json, "torchtitan_llama_perf_memory"), 0.03);
  EXPECT_LE(peak_error(json, "answerai_fsdp_qlora"), 0.021);
}

// Memories of which a measured peak takes all but 5 %, and that it exceeds by 5 %: the aim of both is 0.9.
void peaks_tell_in_which_memories_jobs_fit(const std::string& json) {
  simdjson::dom::parser parser;
  std::size_t all = 0;
  for (const simdjson::dom::element row : parser.parse(json)["capacity"]) {
    if (std::string_view(row["table"]) != "all") continue;
    ++all;
    EXPECT_GE(double(row["fit_recall"]), 0.92);
    EXPECT_GE(double(row["no_fit_recall"]), 0.82);
  }
  EXPECT_EQ(all, 1u);
}

struct Reached80 {
  double least_held_out_of_a_kind;  // the aim is 0.6
  double least_held_out, widest;    // of all kinds
};

// Four fifths of the truths are in intervals of 80 %, of each kind of job and of all: with no constant fitted, as a
// stranger's job has it (the width is what was reached; 15 % are aimed at), and with those of the tables.
void intervals_hold_what_they_say(const std::string& json, const char* table, Reached80 reached) {
  SCOPED_TRACE(table);
  simdjson::dom::parser parser;
  std::size_t kinds = 0;
  for (const simdjson::dom::element row : parser.parse(json)[table]) {
    SCOPED_TRACE(std::string_view(row["job"]));
    ++kinds;
    EXPECT_GE(double(row["inside"]), 0.7);
    EXPECT_LE(double(row["inside"]), 0.92);
    if (!row["inside_held_out"].is_null()) {
      EXPECT_GE(double(row["inside_held_out"]), reached.least_held_out_of_a_kind);
    }
    if (std::string_view(row["job"]) == "all") {
      EXPECT_LE(double(row["inside"]), 0.9);
      EXPECT_LE(double(row["half_width"]), reached.widest);
      EXPECT_GE(double(row["inside_held_out"]), reached.least_held_out);
    }
  }
  EXPECT_EQ(kinds, 7u);
}

// Steps that hang on the host are held, by one deviation for all kinds.
void hosts_hold_what_they_say(const std::string& json) {
  simdjson::dom::parser parser;
  std::size_t rows = 0;
  for (const simdjson::dom::element row : parser.parse(json)["host"]) {
    ++rows;
    EXPECT_GE(std::uint64_t(row["rows"]), 18u);
    EXPECT_GE(double(row["inside"]), 0.7);
    EXPECT_NEAR(double(row["longer"]), double(row["longer_by_rows"]), 0.01);
  }
  EXPECT_EQ(rows, 1u);
}

// The judged halves: what was reached. A table that misses its aim is asserted to miss
// it no further; docs/accuracy.md says why.
void judged_rows_are_as_near_as_they_were(const std::string& json) {
  struct Reached {
    std::string_view table;
    double median, p90, order;
    std::uint64_t rows;
  };
  constexpr Reached kReached[] = {
      {"torchtune_llama32_3b_ablation_a100", 0.016, 0.017, 1.000, 2},
      {"torchtune_llama31_recipes", 0.043, 0.067, 1.000, 2},
      {"megatron_2020_tp_scaling_v100_a100", 0.008, 0.013, 1.000, 2},
      {"vtrain_single_node_a100_iter_time", 0.039, 0.128, 0.990, 45},
      {"vtrain_multi_node_a100_iter_time", 0.149, 0.190, 0.990, 11},
      {"bloom176b_prequel_a100_grid", 0.094, 0.130, 0.845, 18},
      {"megatron_bridge_perf_all", 0.140, 0.205, 1.000, 2},
      {"llmc_step_times", 0.022, 0.022, -1, 1},
      {"qwen_finetune_memory_time_a100", 0.075, 0.425, 0.963, 20},
      {"fms_fsdp_llama2_a100_h100", 0.017, 0.022, 1.000, 2},
      {"torchao_float8nocompile_llama3_8b_ac_h100", 0, 0, 1.000, 0},
      {"deepspeed_azure_zero3_a100", 0.071, 0.210, 0.995, 14},
      {"internevo_7b_a100_throughput", 0.045, 0.228, 0.942, 6},
      {"internevo_7b_a100_zero1_scope", 0.057, 0.062, 0.990, 8},
      {"h200_llama31_8b_zero3_offload_mlengineering", 0.088, 0.097, 1.000, 3},
      {"mosaic_llmfoundry_mpt_throughput", 0.037, 0.078, 0.996, 32},
      {"torchtitan_llama_perf_memory", 0.048, 0.210, 1.000, 4},
      {"torchtitan_llama_tensor_parallel", 0.077, 0.128, 1.000, 2},
      {"answerai_fsdp_qlora", 0.095, 0.347, 0.828, 6},
      {"deepspeed_zero_tutorial_runs", 0.670, 0.670, 0.866, 3},
      {"deepspeed_zero_offload_tflops_v100", 0, 0, 0.928, 0},
  };
  simdjson::dom::parser parser;
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
      if (!row["order"].is_null()) {
        EXPECT_GE(double(row["order"]), reached.order);
      }
    }
  EXPECT_EQ(tables, std::size(kReached));
}

// One run of the command, which takes two minutes.
TEST_F(PublishedAccuracy, FiguresAreAsGoodAsTheyWereAndInThePage) {
  const std::string json = validate("--format json");
  every_row_of_the_page_is_printed(json);
  peaks_are_as_near_as_they_were(json);
  peaks_tell_in_which_memories_jobs_fit(json);
  intervals_hold_what_they_say(json, "coverage",
                               {.least_held_out_of_a_kind = 0.48, .least_held_out = 0.69, .widest = 0.17});
  intervals_hold_what_they_say(json, "coverage_fitted",
                               {.least_held_out_of_a_kind = 0.7, .least_held_out = 0.75, .widest = 0.16});
  hosts_hold_what_they_say(json);
  judged_rows_are_as_near_as_they_were(json);
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
  EXPECT_GT(time_error(json, kTorchtune), 0.25);
  EXPECT_LT(peak_error(json, kTorchtune), 0.05);
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
