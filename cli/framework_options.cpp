#include "cli/framework_options.h"

#include <array>
#include <utility>

#include "cli/terminal.h"
#include "models/workload/frameworks/framework_job.h"
#include "sim/error.h"
#include "study/framework_scenario.h"

namespace memwall {
namespace {

std::array<std::pair<Framework, const std::string*>, 4> files_of(const FrameworkOptions& o) {
  return {{{Framework::deepspeed, &o.deepspeed},
           {Framework::torchtitan, &o.torchtitan},
           {Framework::accelerate, &o.accelerate},
           {Framework::transformers, &o.transformers}}};
}

}  // namespace

bool FrameworkOptions::any() const {
  for (const auto& [framework, file] : files_of(*this))
    if (!file->empty()) return true;
  return false;
}

void add_framework_options(CLI::App& app, FrameworkOptions& o) {
  app.add_option(
      "--deepspeed", o.deepspeed,
      "A DeepSpeed configuration (ds_config.json): its ZeRO stage, offload and batch, as policies and settings");
  app.add_option("--torchtitan", o.torchtitan,
                 "A torchtitan configuration (TOML, 0.2.2): its sharding, checkpointing and batch; without a step its "
                 "network is the step, where memwall knows it");
  app.add_option("--accelerate", o.accelerate, "What `accelerate config` writes (YAML): FSDP, DeepSpeed or DDP");
  app.add_option("--transformers", o.transformers,
                 "Transformers' TrainingArguments (JSON): FSDP, DeepSpeed or DDP, checkpointing and batch");
  app.add_option("--gpus", o.gpus, "How many GPUs train, one process each, where the configuration does not say")
      ->check(CLI::Range(1u, 1u << 20));
}

void take_framework(const FrameworkOptions& o, const char* verb, std::vector<std::string>& steps,
                    std::vector<std::string>& policies) {
  const std::pair<Framework, const std::string*>* given = nullptr;
  const auto files = files_of(o);
  for (const auto& each : files) {
    if (each.second->empty()) continue;
    if (given != nullptr)
      throw UsageError(
          "Two configurations of frameworks are given; expected one of --deepspeed, --torchtitan, "
          "--accelerate and --transformers.");
    given = &each;
  }
  if (given == nullptr) {
    if (o.gpus > 0)
      throw UsageError(
          "--gpus is of a framework's configuration (--deepspeed, --torchtitan, --accelerate, "
          "--transformers); a policy has ranks=N.");
    if (steps.empty()) throw UsageError("step is required.");
    return;
  }
  const FrameworkJob job = read_framework_job(given->first, *given->second, {o.gpus});
  Scenario scenario;
  scenario.step = std::move(steps), scenario.policies = std::move(policies);
  for (const std::string& sentence : take_framework_job(job, given->first, scenario))
    print_error("memwall {}: {}\n", verb, sentence);
  steps = std::move(scenario.step), policies = std::move(scenario.policies);
}

}  // namespace memwall
