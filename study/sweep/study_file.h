// A study as a file: what `memwall sweep` is asked, key by key with the names of its options.
//
//   title: "Which link hides the offload of activations?"
//   step: "llama3.2-1b:batch=4"
//   machine: "h100-sxm-80gb"
//   over: "pcie=16..128GB/s:log:7"
//   over: "policy=none|offload:what=activations"
//   objective: "step_time"
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "study/scenario.h"
#include "study/sweep/sweep_space.h"

namespace memwall {

struct StudyFile {
  std::string title{};
  Scenario base{};                      // machine stands in `machines`
  std::vector<std::string> machines{};  // several are an axis
  std::vector<std::string> axes{}, zips{}, conditions{}, fields{}, figures{};
  std::string sample{}, objective{};

  bool operator==(const StudyFile&) const = default;
};

// Ends studies' names.
inline constexpr const char* kStudyEnding = ".study";

// Of a file. Steps, machines, captures and complete steps that stand beside it are named from there. Throws InputError
// (file, line, found, expected).
StudyFile load_study_file(const std::filesystem::path& path);
StudyFile parse_study_file(const std::string& text, const std::string& name);
// A study as such a file. parse_study_file(study_text(s)) == s. REQUIRES: its base says nothing that a file has no key
// for.
std::string study_text(const StudyFile& study);

// Studies of any step, by name, that memwall comes with, in the folder that MEMWALL_STUDIES names, else as
// data_folder() says; sorted. Throws InputError where it cannot be read.
std::vector<std::string> study_presets();
// Throws UsageError with the nearest name where there is none.
StudyFile load_study_preset(const std::string& name);

// `file` with what `given` says besides: words replace those of the file, lists of conditions, settings, policies and
// figures go on behind it, an axis replaces that of its name.
StudyFile merged(StudyFile file, const StudyFile& given);

// Axes, zips and samples, and in `base` the machine where there is one alone. Throws UsageError.
SweepSpace space_of(const StudyFile& study, Scenario& base);

}  // namespace memwall
