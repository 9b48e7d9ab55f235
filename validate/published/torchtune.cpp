// torchtune's ablation of Llama 3.2 3B on one A100 80 GB: each row adds a technique to those before it.
//
// What the table leaves open: "packed" means that each of the 2 sequences has all 4096 tokens; the baseline's mean
// length is not stated, so that it cannot be predicted. Gradients are not accumulated (the speed-up of packing would
// be less), and the loss is read after each step. A loss in one piece is not compiled: the recipes drop what
// compile_loss returns, which compiles in place only a chunked loss (torchtune's recipes and training/_compile.py at
// the end of 2024).
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>

#include "validate/published/tables.h"

namespace memwall {
namespace {

struct Technique {
  const char* words;  // in the row's name, in lower case
  std::function<void(TrainingJob&)> apply;
};

// Longer phrases first: the first that the row's name holds counts.
const std::vector<Technique>& techniques() {
  static const std::vector<Technique> known{
      {"packed", [](TrainingJob&) {}},
      {"compile", [](TrainingJob& job) { job.recipe.execution = ExecutionMode::compiled; }},
      {"chunked cross entropy",
       [](TrainingJob& job) {
         job.recipe.loss_chunks = 8;  // torchtune's num_output_chunks
         job.recipe.compiled_loss = true;
       }},
      {"activation checkpointing", [](TrainingJob& job) { job.recipe.checkpoint = ActivationCheckpoint::full; }},
      {"optimizer step into backward", [](TrainingJob& job) { job.recipe.optimizer_in_backward = true; }},
      {"optimizer_in_bwd", [](TrainingJob& job) { job.recipe.optimizer_in_backward = true; }},
      {"optimizer in backward", [](TrainingJob& job) { job.recipe.optimizer_in_backward = true; }},
      {"activation offloading", [](TrainingJob& job) { job.recipe.activation_offload = true; }},
      {"8-bit", [](TrainingJob& job) { job.recipe.optimizer = OptimizerKind::adamw_8bit; }},
      {"8bit", [](TrainingJob& job) { job.recipe.optimizer = OptimizerKind::adamw_8bit; }},
  };
  return known;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

TrainingJob packed_job() {
  TrainingJob job = load_training_job("llama3.2-3b-torchtune");
  job.recipe.batch = 2;
  job.recipe.sequence = 4096;
  return job;
}

// What the row adds, or why it cannot be said.
std::string add_technique(const std::string& name, TrainingJob& job) {
  if (name.find("qlora") != std::string::npos) return "parameters in NF4 are not implemented";
  if (name.find("lora") != std::string::npos) {
    // "LoRA rows drop optimizer in backward and 8-bit AdamW", says the table; the recipe's rank is 64.
    job.recipe.lora_rank = 64;
    job.recipe.optimizer_in_backward = false;
    job.recipe.optimizer = OptimizerKind::adamw;
    return {};
  }
  for (const Technique& technique : techniques()) {
    if (name.find(technique.words) == std::string::npos) continue;
    technique.apply(job);
    return {};
  }
  return "a technique that is not known";
}

}  // namespace

std::vector<PublishedCase> torchtune_cases(const std::vector<CsvTableRow>& rows) {
  std::vector<PublishedCase> cases;
  TrainingJob job = packed_job();
  const double tokens = static_cast<double>(job.recipe.batch * job.recipe.sequence);
  for (const CsvTableRow& row : rows) {
    PublishedCase c;
    c.name = row.text("technique");
    c.gpu = "A100";
    c.machine = "a100-sxm-80gb";
    c.peak_bytes = row.number("peak_mem_active_gib") * kGiB;
    const std::string name = lower(c.name);
    if (name.find("unpacked") != std::string::npos) {
      c.why_not = "the lengths of its samples are not stated";
    } else {
      c.why_not = add_technique(name, job);
      c.step_seconds = tokens / row.number("tokens_per_s");
    }
    c.job = job;
    cases.push_back(std::move(c));
  }
  return cases;
}

}  // namespace memwall
