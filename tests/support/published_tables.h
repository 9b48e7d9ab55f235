// A few of the published tables, for tests that ask how their predictions are printed and not how near they are.
#pragma once

#include <filesystem>

#include "tests/support/shared_data.h"

namespace memwall {

// Puts a folder of published tables whose jobs are simulated within a second or two, with rows that are fitted, judged,
// refused and without a time: what `validate --published` prints of them has all of its tables. False where they are
// absent. All tables take minutes: tests/oracle/published_accuracy_test.cpp reads those, in one run of the program.
inline bool copy_few_published_tables(const std::filesystem::path& folder) {
  const auto data = shared_data();
  if (!data || !std::filesystem::is_directory(*data / "published")) return false;
  std::filesystem::create_directories(folder);
  for (const char* table : {"torchtune_llama32_3b_ablation_a100.csv", "torchtune_llama31_recipes.csv",
                            "megatron_2020_tp_scaling_v100_a100.csv", "torchtitan_llama_perf_memory.csv",
                            "torchao_float8nocompile_llama3_8b_ac_h100.csv"})
    std::filesystem::copy_file(*data / "published" / table, folder / table);
  return true;
}

}  // namespace memwall
