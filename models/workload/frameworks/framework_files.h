// One function per framework, and what several of them say alike. Internal to models/workload/frameworks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/workload/frameworks/configuration_file.h"
#include "models/workload/frameworks/framework_job.h"

namespace memwall {

// A policy's text while it grows: name and parameters.
class PolicyWords {
 public:
  explicit PolicyWords(std::string name) : text_(std::move(name)) {}
  void add(std::string_view key, std::string_view value) {
    text_ += is_first_ ? ":" : ",";
    text_.append(key).append("=").append(value);
    is_first_ = false;
  }
  void add(std::string_view key, std::int64_t value) { add(key, std::to_string(value)); }
  void add_flag(std::string_view key, bool value) { add(key, value ? "1" : "0"); }
  std::string text() const { return text_; }

 private:
  std::string text_;
  bool is_first_ = true;
};

FrameworkJob deepspeed_job(const ConfigurationFile& file, const FrameworkSurroundings& surroundings);
FrameworkJob torchtitan_job(const ConfigurationFile& file, const FrameworkSurroundings& surroundings);
FrameworkJob accelerate_job(const ConfigurationFile& file, const FrameworkSurroundings& surroundings);
FrameworkJob transformers_job(const ConfigurationFile& file, const FrameworkSurroundings& surroundings);

// Adds `policies`, settings and notes of a configuration that another one holds or names.
void take_over(FrameworkJob& job, FrameworkJob inner);

// Adds "key=value" to the job's settings.
void set_number(FrameworkJob& job, const char* key, std::int64_t value);

// Of FSDP, what Accelerate and Transformers call it. `prefix`: where its keys are, "fsdp_config." with "fsdp_" or
// without.
struct FsdpKeys {
  std::string prefix;
  int version = 2;                      // where the file does not say
  std::string sharding = "FULL_SHARD";  // of version 1, where the file does not say
  bool clips = false;                   // gradients are clipped by their norm
};
// The policy `fsdp`, and checkpointing where it is asked for. REQUIRES: job.ranks is known.
void add_fsdp(FrameworkJob& job, const ConfigurationFile& file, const FsdpKeys& keys, bool is_fp32);

// The ranks of the file (0 = it does not say) beside those that are known. Throws InputError if they differ.
std::uint32_t ranks_of(const ConfigurationFile& file, std::uint32_t said, const FrameworkSurroundings& surroundings);
// Throws UsageError, saying what to give, where they are not known.
void require_ranks(const ConfigurationFile& file, const FrameworkJob& job);

// Sizes that a recipe takes (workload.proto).
inline constexpr std::int64_t kMostSamples = 10'000'000, kMostAccumulation = 100'000, kMostTokens = 1'000'000'000,
                              kMostRanks = 1 << 20;

}  // namespace memwall
