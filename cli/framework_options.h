// Configurations of training frameworks as part of the question: --deepspeed, --torchtitan, --accelerate,
// --transformers, --gpus.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace memwall {

struct FrameworkOptions {
  std::string deepspeed, torchtitan, accelerate, transformers;  // files; at most one is given
  std::uint32_t gpus = 0;                                       // 0 = not given
  bool any() const;
};

void add_framework_options(CLI::App& app, FrameworkOptions& options);

// Changes steps and policies as the file says, and prints what it became on stderr, `verb` in front. Nothing without a
// file. Throws UsageError for several, for --gpus without any, and where there is no step.
void take_framework(const FrameworkOptions& options, const char* verb, std::vector<std::string>& steps,
                    std::vector<std::string>& policies);

}  // namespace memwall
