// A scenario: one question about a step, as a value that can be written as a line of text and read back.
//
//   step=gpt_124m.mwt machine=h100-sxm-80gb set=gpu.hbm.bandwidth=4TB/s policy=checkpoint:mode=full
//
// Words are `key=value`, separated by blanks, in any order; keys of lists may be repeated, and their order counts. A
// value that holds blanks, quotes or unprintable bytes stands in double quotes, with \" \\ \n \t and \xHH inside.
// What is not said has the value below, and is not written.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace memwall {

struct Scenario {
  // The step: a trace file, a capture, a workload's name, a name given to Study::add_step; several, or a folder: the
  // ranks of one job.
  std::vector<std::string> step{};
  std::vector<std::string> execution_traces{};  // of the same runs, beside Kineto captures
  std::string onto{};                           // a profile's complete step (study/grafted_workload.h); "" = none
  std::string second_size{};                    // a capture of the same program at another size; "" = none
  std::string measured_on{};                    // the machine of the durations; "" = as the step says

  std::string machine{};                // a name or a file; "" = the one that the step was measured on
  std::vector<std::string> settings{};  // overrides of its numbers: "gpu.hbm.bandwidth=4TB/s"
  // GPU memory that the step's storages may take, in place of what the machine has for them: "24GiB", or a share of that
  // ("60%"); "" = all. Planners plan for it.
  std::string budget{};
  bool transfer_host = false;         // host time too, on another machine: TransferSettings::host

  std::vector<std::string> scale{};     // of durations: "kernels=1.1,rank=2"; they multiply
  std::uint32_t repeat = 1;           // how many times the step runs in a row; at least 1
  std::vector<std::string> policies{};  // rewriters: "checkpoint:mode=full"
  std::string plan{};                   // file of a memory plan for the step after its policies; "" = none
  std::string executable{};             // memory plans do what this executes: "torch"; "" = whatever they decide
  std::string pager{};                  // "" = none

  std::string allocator = "pytorch";  // of run_allocator_names()
  std::string allocator_settings{};     // as PYTORCH_ALLOC_CONF; "" = default

  bool operator==(const Scenario&) const = default;
};

// One line, without line end. parse_scenario(to_text(s)) == s. REQUIRES: there is a step, and repeat is not 0.
std::string to_text(const Scenario& scenario);

// Throws UsageError naming the word, what was found, and the nearest key; policies and machines are not looked up.
Scenario parse_scenario(std::string_view text);

}  // namespace memwall
