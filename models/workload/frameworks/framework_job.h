// What a training framework's configuration file asks for, in memwall's words: settings of a network's recipe,
// policies, ranks, and what the file says beyond that.
//
// Nothing is simulated here, and no policy is known: policies are text ("deepspeed:stage=3,ranks=8"), which the
// registry checks as if a person had typed it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace memwall {

enum class Framework : std::uint8_t {
  deepspeed,     // 0.19: ds_config.json
  torchtitan,    // 0.2.2: a .toml of torchtitan's job_config
  accelerate,    // 1.15: what `accelerate config` writes, YAML or JSON
  transformers,  // 5.23: TrainingArguments as JSON or YAML
};
// "DeepSpeed", as people write it.
std::string_view to_string(Framework framework);

// What the file does not say and the caller may know.
struct FrameworkSurroundings {
  std::uint32_t ranks = 0;  // processes, one GPU each; 0 = not known
};

struct FrameworkJob {
  std::string network;                // "llama3-8b", where the file names one that memwall knows; else ""
  std::vector<std::string> settings;  // of the network: "batch=2", "precision=bf16"
  std::vector<std::string> policies;  // "deepspeed:stage=3,ranks=8"
  std::uint32_t ranks = 0;            // 0 = neither the file nor the surroundings say
  std::int64_t batch = 0, sequence = 0, accumulation = 0;  // as in `settings`; 0 = the file does not say
  std::vector<std::string> notes;                          // sentences: what was left out, and why
  std::vector<std::string> unknown_keys;                   // dotted paths that the framework does not have
  std::vector<std::string> meant_keys;  // of each: what it may have been meant for; "" = none is near
  std::vector<std::filesystem::path> files;                // that were read
};

// Throws InputError for a file that cannot be read, for values of the wrong kind, and for what the framework itself
// refuses, with its reason; UsageError for what memwall does not implement.
FrameworkJob read_framework_job(Framework framework, const std::filesystem::path& path,
                                const FrameworkSurroundings& surroundings);

}  // namespace memwall
