#include "models/workload/generate/configuration/workload_file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "models/workload/generate/configuration/workload_limits.h"
#include "models/workload/generate/configuration/workload_text.h"
#include "models/workload/import/bytes/file_text.h"
#include "sim/error.h"
#include "sim/files/data_folder.h"
#include "sim/files/input_file.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kSuffix = ".textproto";
constexpr std::size_t kLargestFile = 1 << 20;  // such files have a few kilobytes
constexpr int kLongestChain = 8;               // of files that are each other's base

bool is_path(const std::string& what) {
  return what.find('/') != std::string::npos || what.ends_with(kSuffix) || what.ends_with(".json");
}

// What a name of a network ends with, in millions of parameters: "124m", "1.5b"; of other endings 0.
double millions_of(const std::string& size) {
  std::size_t used = 0;
  double number = 0;
  try {
    number = std::stod(size, &used);
  } catch (const std::exception&) {
    return 0;
  }
  if (used + 1 != size.size()) return 0;
  return size.back() == 'm' ? number : size.back() == 'b' ? 1000 * number : 0;
}

// Known names stand for files of the folder; paths are taken from `beside`, "" being the working folder.
fs::path find_file(const std::string& what, const fs::path& beside) {
  if (is_path(what)) return beside / what;
  const std::vector<std::string> known = known_workloads();
  if (std::find(known.begin(), known.end(), what) != known.end())
    return workload_folder() / (what + std::string(kSuffix));
  const std::string near = what.size() > 200 ? "" : nearest_workload(what);
  throw UsageError(
      fmt::format("there is no workload \"{}\"{}; known are {}, or give the path of a {} file or of a config.json",
                  what.substr(0, 200), near.empty() ? "" : fmt::format(" (nearest: \"{}\")", near),
                  fmt::join(known, ", "), kSuffix));
}

// Shipped files are called by their name alone: messages do not depend on where memwall is installed.
std::string shown(const fs::path& path) {
  return path.parent_path() == workload_folder() ? path.filename().string() : path.string();
}

std::string content_of_workload(const fs::path& path) {
  readable_path(path, fmt::format("a workload ({} or a Hugging Face config.json)", kSuffix));
  return read_file_text(path, kLargestFile);
}

bool is_json(const std::string& content) {
  const std::size_t first = content.find_first_not_of(" \t\r\n");
  return first != std::string::npos && content[first] == '{';
}

TrainingJob load(const fs::path& path, int depth);

// Lays the file over its base.
TrainingJob read_text(const std::string& content, const std::string& name, const fs::path& path, int depth) {
  const WorkloadText text(name, content);
  TrainingJob job;
  if (!text.base().empty()) {
    if (depth >= kLongestChain)
      text.refuse_base(
          fmt::format("base \"{}\" is the {}th in a row; expected at most {}: do the files name each other?",
                      text.base(), depth + 1, kLongestChain));
    fs::path base;
    try {
      base = find_file(text.base(), path.parent_path());
    } catch (const UsageError& unknown) {
      text.refuse_base(unknown.what());
    }
    job = load(base, depth + 1);
  }
  if (!text.names_model()) job.model.name = fs::path(name).stem().string();
  text.apply_to(job);
  return job;
}

TrainingJob load(const fs::path& path, int depth) {
  const std::string content = content_of_workload(path);
  TrainingJob job =
      is_json(content) ? parse_hugging_face_config(content, shown(path)) : read_text(content, shown(path), path, depth);
  job.files.insert(job.files.begin(), path);
  return job;
}

TrainingJob require_possible(TrainingJob job, const std::string& file) {
  if (const std::string why = contradiction(job); !why.empty()) throw InputError(fmt::format("{}: {}.", file, why));
  return job;
}

}  // namespace

NameAndSettings name_and_settings(const std::string& what) {
  const std::size_t folder = what.rfind('/'), colon = what.find(':', folder == std::string::npos ? 0 : folder);
  if (colon == std::string::npos || what.find('=', colon) == std::string::npos) return {what, {}};
  NameAndSettings result{what.substr(0, colon), {}};
  for (std::size_t at = colon + 1; at <= what.size();) {
    const std::size_t end = std::min(what.find(',', at), what.size());
    const std::string piece = what.substr(at, end - at);
    if (piece.find('=') != std::string::npos || result.settings.empty())
      result.settings.push_back(piece);
    else
      result.settings.back() += "," + piece;  // of a list: blocks=3,4,6,3
    at = end + 1;
  }
  return result;
}

std::vector<std::string> known_workloads() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(workload_folder(), error))
    if (entry.path().extension() == kSuffix) names.push_back(entry.path().stem().string());
  if (error)
    throw InputError(fmt::format("The folder of workload files {} cannot be read: {}. MEMWALL_WORKLOADS names another.",
                                 workload_folder().string(), error.message()));
  std::sort(names.begin(), names.end());
  return names;
}

std::string nearest_workload(const std::string& name) {
  const std::vector<std::string> known = known_workloads();
  std::string smallest;
  double least = 0;
  for (const std::string& candidate : known) {
    if (name.empty() || !candidate.starts_with(name + "-")) continue;
    const double millions = millions_of(candidate.substr(name.size() + 1));
    if (millions > 0 && (smallest.empty() || millions < least)) smallest = candidate, least = millions;
  }
  return smallest.empty() ? nearest_name(name, known) : smallest;
}

std::vector<WorkloadSummary> list_workloads() {
  std::vector<WorkloadSummary> summaries;
  for (const std::string& name : known_workloads()) {
    const fs::path path = workload_folder() / (name + std::string(kSuffix));
    summaries.push_back({name, WorkloadText(shown(path), content_of_workload(path)).description()});
  }
  return summaries;
}

bool names_workload(const std::string& what) {
  const std::vector<std::string> known = known_workloads();
  return std::find(known.begin(), known.end(), name_and_settings(what).name) != known.end();
}

TrainingJob load_training_job(const std::string& what) {
  const NameAndSettings parts = name_and_settings(what);
  fs::path path;
  try {
    path = find_file(parts.name, "");
  } catch (const UsageError& unknown) {
    const std::size_t colon = parts.name.rfind(':');
    if (colon != std::string::npos && names_workload(parts.name.substr(0, colon)))
      throw UsageError(fmt::format("\"{}\": what follows the name is no setting; expected KEY=VALUE, as in {}:batch=2.",
                                   what, parts.name.substr(0, colon)));
    throw UsageError(fmt::format("{}.", unknown.what()));
  }
  TrainingJob job = require_possible(load(path, 0), shown(path));
  if (!parts.settings.empty()) set_all(job, parts.settings);
  return job;
}

TrainingJob parse_training_job(const std::string& text, const std::string& name) {
  return require_possible(read_text(text, name, "", 0), name);
}

void set(TrainingJob& job, const std::string& assignment) { set_all(job, {assignment}); }

void set_all(TrainingJob& job, const std::vector<std::string>& assignments) {
  TrainingJob changed = job;
  for (const std::string& assignment : assignments) apply_assignment(changed, assignment);
  if (const std::string why = contradiction(changed); !why.empty())
    throw UsageError(fmt::format("\"{}\": {}.", fmt::join(assignments, "\", \""), why));
  job = std::move(changed);
}

fs::path workload_folder() { return data_folder("MEMWALL_WORKLOADS", "workloads", MEMWALL_WORKLOAD_DIR); }

}  // namespace memwall
