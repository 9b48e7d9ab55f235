// llm.c's scripts: GPT-2 in bf16 with fp32 main parameters, cuDNN attention, ZeRO stage 1 over eight A100 80 GB.
// The times are remarks in scripts, good to about 5 %.
#include <fmt/format.h>

#include "validate/published/tables.h"

namespace memwall {

std::vector<PublishedCase> llmc_cases(const std::vector<CsvTableRow>& rows) {
  constexpr std::int64_t kGpus = 8;
  std::vector<PublishedCase> cases;
  for (const CsvTableRow& row : rows) {
    PublishedCase c;
    c.name = fmt::format("{}, {}, microbatch {}", row.text("model"), row.text("hardware"), row.text("microbatch"));
    c.step_seconds = row.number("step_time_s");
    c.job = load_training_job("gpt2-llmc");
    c.job.model.layers = row.integer("layers");
    c.job.model.width = row.integer("hidden");
    c.job.model.heads = row.integer("heads");
    c.job.model.longest = c.job.recipe.sequence = row.integer("seq");
    c.job.recipe.batch = row.integer("microbatch");
    const auto sequences = whole_passes(row.integer("total_batch_tokens"), 1, row.integer("seq"));
    const auto passes = sequences ? whole_passes(*sequences, kGpus, row.integer("microbatch")) : std::nullopt;
    c.job.recipe.accumulation = passes.value_or(1);
    c.job.recipe.data_parallel = kGpus;
    if (row.text("hardware").rfind("8xA100-80GB", 0) == 0) {
      c.gpu = "A100";
      c.machine = "a100-sxm-80gb";
    } else {
      c.why_not = fmt::format("there is no machine file for \"{}\"", row.text("hardware"));
    }
    if (row.has("usable") && row.text("usable") != "yes") c.why_not = "the table says that it is wrong";
    if (!passes.value_or(0)) c.why_not = "its tokens are not whole microbatches of 8 GPUs";
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace memwall
