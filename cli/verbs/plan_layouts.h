// memwall plan --gpus N: the layouts of a generated job over many GPUs. Internal to cli/verbs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace memwall {

struct LayoutOptions {
  std::vector<std::string> files, settings;
  std::string machine, budget, format = "table";
  std::uint32_t gpus = 0;
  std::int64_t global_batch = 0;
  unsigned jobs = 0;
  bool full = false, one_line = false;
};

// The command that searches how a step that is too large for one GPU is divided over several, as a line to be printed
// beside the answer, with `settings` as --set has them; "" where the search does not take the step.
std::string layout_hint(const std::string& step, const std::string& machine, const std::vector<std::string>& settings);

// The exit code. Throws UsageError.
int plan_layouts(const LayoutOptions& options);

}  // namespace memwall
