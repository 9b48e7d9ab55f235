#include "cli/one_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "cli/print/shell_word.h"
#include "models/workload/import/ranks/job_files.h"
#include "sim/error.h"
#include "study/workload_file.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

std::string whole(const std::string& name) {
  std::error_code error;
  if (!name.empty() && fs::exists(name, error)) return fs::absolute(name).lexically_normal().string();
  // Settings, or the member of an archive, follow the path.
  const std::size_t colon = name.find(':');
  if (colon == std::string::npos || colon == 0 || !fs::exists(name.substr(0, colon), error)) return name;
  return fs::absolute(name.substr(0, colon)).lexically_normal().string() + name.substr(colon);
}

// A policy's words may be files: exec:./planner.py. One without a dot and a slash is none, whatever lies in the folder.
std::string with_whole_files(const std::string& policy) {
  std::string text;
  for (std::size_t begin = 0; begin <= policy.size();) {
    const std::size_t end = std::min(policy.find_first_of(":=, ", begin), policy.size());
    const std::string word = policy.substr(begin, end - begin);
    std::error_code error;
    const bool is_file = word.find_first_of("./") != std::string::npos && fs::is_regular_file(word, error);
    text += is_file ? fs::absolute(word).lexically_normal().string() : word;
    if (end < policy.size()) text += policy[end];
    begin = end + 1;
  }
  return text;
}

std::string environment_words() {
  std::string words;
  for (const char* name : {"MEMWALL_MACHINES", "MEMWALL_WORKLOADS"})
    if (const char* const value = std::getenv(name); value != nullptr && *value != '\0')
      words += fmt::format("{}={} ", name, shell_quoted(whole(value)));
  return words;
}

}  // namespace

Scenario with_whole_paths(Scenario scenario) {
  for (std::vector<std::string>* names : {&scenario.step, &scenario.execution_traces})
    for (std::string& name : *names) name = whole(name);
  for (std::string* name :
       {&scenario.onto, &scenario.second_size, &scenario.measured_on, &scenario.machine, &scenario.plan})
    *name = whole(*name);
  for (std::string& policy : scenario.policies) policy = with_whole_files(policy);
  return scenario;
}

std::string one_line(const Scenario& scenario, bool accept_gaps) {
  for (const std::string& step : scenario.step) {
    std::error_code error;
    if (step == "-" || step == "/dev/stdin" || fs::is_fifo(step, error))
      throw UsageError(
          "--one-line: the step came through a pipe, which no other command can read again; expected a file.");
  }
  return fmt::format("{}memwall run {}{}", environment_words(), shell_quoted(to_text(with_whole_paths(scenario))),
                     accept_gaps ? " --accept-gaps" : "");
}

void require_step(const Scenario& scenario) {
  for (const std::vector<std::string>* names : {&scenario.step, &scenario.execution_traces})
    for (const std::string& name : *names)
      if (!stands_for_several(name)) (void)kind_of_workload(name);
  for (const std::string* name : {&scenario.onto, &scenario.second_size})
    if (!name->empty()) (void)kind_of_workload(*name);
}

void add_one_line_option(CLI::App& app, bool& one_line, const std::string& what) {
  app.add_flag("--one-line", one_line,
               "Print only a command that gives " + what + " again, from any folder: memwall run '...'");
}

}  // namespace memwall
