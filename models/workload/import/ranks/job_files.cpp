#include "models/workload/import/ranks/job_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>

#include "models/workload/import/bytes/archive_source.h"
#include "models/workload/import/bytes/file_head.h"
#include "models/workload/import/bytes/sqlite_database.h"
#include "models/workload/import/cupti/inject_import.h"
#include "models/workload/import/cupti/nsys_import.h"
#include "models/workload/import/execution_trace/capture_rank.h"
#include "models/workload/import/execution_trace/execution_trace.h"
#include "models/workload/import/importer.h"
#include "models/workload/import/kineto/kineto_step.h"
#include "models/workload/import/rocm/rocm_import.h"
#include "sim/error.h"
#include "sim/human_text.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

enum class FileKind : std::uint8_t { capture, execution_trace, other };

bool has_member(const FileHead& head, const char* name) {
  return std::find(head.members.begin(), head.members.end(), name) != head.members.end();
}

// Files that cannot be read are of no kind here; whoever opens them says why.
FileKind kind_of(const fs::path& path) {
  try {
    FileHead head = read_file_head(path);
    if (recognizes_inject(head) || recognizes_kineto(head)) return FileKind::capture;
    if (recognizes_nsys(head) || recognizes_rocprof_json(head))
      return is_sqlite(head.raw) && !split_archive_path(path).member.empty() ? FileKind::other : FileKind::capture;
    if (!head.text.starts_with('{')) return FileKind::other;
    const Importer* importer = find_importer(head);  // reads on until members tell
    if (recognizes_kineto(head) || recognizes_rocprof_json(head)) return FileKind::capture;
    const bool is_trace = importer != nullptr ? importer->name == "ExecutionTrace"
                                              : has_member(head, "nodes") && has_member(head, "schema");
    return is_trace ? FileKind::execution_trace : FileKind::other;
  } catch (const InputError&) {
    return FileKind::other;
  }
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (at->is_regular_file() && !at->path().filename().string().starts_with('.')) files.push_back(at->path());
  if (error) throw InputError(fmt::format("{}: the folder cannot be read ({}).", folder.string(), error.message()));
  std::sort(files.begin(), files.end());
  return files;
}

// Of an archive of several files; none where it is something else, or cannot be read.
std::vector<fs::path> files_in_archive(const fs::path& path) {
  constexpr std::size_t kMostMembers = 4096;
  std::vector<fs::path> files;
  std::error_code error;
  if (!fs::exists(path, error) || fs::is_directory(path, error)) return files;
  try {
    for (const std::string& member : ArchiveSource::members(path, kMostMembers))
      files.push_back(path.string() + ":" + member);
  } catch (const InputError&) {
    return {};
  }
  std::sort(files.begin(), files.end());
  return files.size() > 1 ? files : std::vector<fs::path>{};
}

// A folder may be one capture of another format, as TrioSim and G10 write them: which of its files to give.
std::string other_format_hint(const std::vector<fs::path>& files) {
  for (const fs::path& file : files) {
    if (file.filename() == "config.json")
      return fmt::format(", or, of a network that is to be generated, its configuration by its own path: {}",
                         file.string());
    try {
      FileHead head = read_file_head(file);
      if (const Importer* importer = find_importer(head))
        return fmt::format(", or one file of another format by its own path: {} ({})", file.string(), importer->name);
    } catch (const InputError&) {
      continue;  // whoever opens it says why
    }
  }
  return "";
}

// "notes.txt, rank1.json and 3 others".
std::string names_of(const std::vector<fs::path>& files) {
  constexpr std::size_t kNamed = 5;
  std::string names;
  for (std::size_t i = 0; i < std::min(kNamed, files.size()); ++i)
    names += (i == 0 ? "" : i + 1 == files.size() ? " and " : ", ") + files[i].filename().string();
  return files.size() <= kNamed ? names : fmt::format("{} and {} others", names, files.size() - kNamed);
}

class Sorter {
 public:
  void take(const fs::path& given, bool alone) {
    std::error_code error;
    if (fs::is_directory(given, error)) return take_all(given, files_in(given), "folder");
    if (const std::vector<fs::path> files = files_in_archive(given); !files.empty())
      if (std::ranges::any_of(files, [](const fs::path& file) { return kind_of(file) == FileKind::capture; }))
        return take_all(given, files, "archive");
    if (!alone && kind_of(given) == FileKind::execution_trace)
      traces_.push_back(given);
    else
      out_.files.push_back({given, {}});
  }

  JobFiles match(const std::vector<fs::path>& execution_traces) && {
    std::error_code error;
    for (const fs::path& path : execution_traces)
      if (fs::is_directory(path, error))
        take_traces_of(path);
      else
        traces_.push_back(path);
    if (out_.files.size() == 1 && traces_.size() == 1) {
      out_.files.front().execution_trace = traces_.front();
      return std::move(out_);
    }
    for (std::size_t i = 0; i < traces_.size(); ++i) give(i);
    const auto has_one = [](const JobFile& file) { return !file.execution_trace.empty(); };
    if (!of_folder_.empty() && std::none_of(out_.files.begin(), out_.files.end(), has_one))
      throw UsageError(
          fmt::format("--et {}: of its {} none is known to be of a capture's rank; expected the one of the "
                      "capture.",
                      of_folder_.begin()->parent_path().string(), counted_text(of_folder_.size(), "ExecutionTrace")));
    return std::move(out_);
  }

 private:
  // ExecutionTraces of a whole job, of which the captures may be some.
  void take_traces_of(const fs::path& folder) {
    std::size_t found = 0;
    for (const fs::path& file : files_in(folder)) {
      if (kind_of(file) != FileKind::execution_trace) continue;
      ++found;
      traces_.push_back(file);
      of_folder_.insert(file);
    }
    if (found == 0)
      throw InputError(fmt::format("{}: the folder holds no ExecutionTrace; expected those of the captures' ranks.",
                                   folder.string()));
  }

  // What a folder or an archive holds.
  void take_all(const fs::path& place, const std::vector<fs::path>& files, std::string_view noun) {
    std::size_t captures = 0, traces = 0;
    std::vector<fs::path> others;
    for (const fs::path& file : files) {
      switch (kind_of(file)) {
        case FileKind::capture:
          out_.files.push_back({file, {}});
          ++captures;
          break;
        case FileKind::execution_trace:
          traces_.push_back(file);
          ++traces;
          break;
        case FileKind::other:
          others.push_back(file);
      }
    }
    if (captures == 0)
      throw InputError(
          fmt::format("{}: the {} holds no capture of a rank ({} ExecutionTraces, {} other files); "
                      "expected Kineto captures, captured CUDA programs, Nsight Systems exports or ROCm profiles{}.",
                      place.string(), noun, traces, others.size(), other_format_hint(others)));
    out_.notes.push_back(fmt::format("{}: {} and {}.", place.string(), counted_text(captures, "capture"),
                                     counted_text(traces, "ExecutionTrace")));
    if (!others.empty())
      out_.left_out.push_back(
          fmt::format("{}: left out, as no capture of a rank: {}.", place.string(), names_of(others)));
  }

  void give(std::size_t index) {
    const fs::path& trace = traces_[index];
    const std::int64_t rank = rank_of(read_execution_trace(trace));
    if (ranks_.empty())
      for (const JobFile& file : out_.files) ranks_.push_back(captured_rank(file.capture));
    auto found = rank < 0 ? ranks_.end() : std::find(ranks_.begin(), ranks_.end(), rank);
    const bool by_rank = found != ranks_.end();
    const bool none_told = std::all_of(ranks_.begin(), ranks_.end(), [](std::int64_t r) { return r < 0; });
    if (!by_rank && (rank < 0 || none_told) && traces_.size() == ranks_.size())
      found = ranks_.begin() + static_cast<std::ptrdiff_t>(index);
    if (found == ranks_.end() && of_folder_.contains(trace)) return;  // of a rank whose capture is not given
    if (found == ranks_.end())
      throw UsageError(fmt::format(
          "--et {}: it is {}, and no capture is known to be; expected the ExecutionTrace of one "
          "of the {} captures, or as many ExecutionTraces as captures, in their order.",
          trace.string(), rank < 0 ? "of an unknown rank" : fmt::format("of rank {}", rank), ranks_.size()));
    JobFile& file = out_.files[static_cast<std::size_t>(found - ranks_.begin())];
    if (!file.execution_trace.empty())
      throw UsageError(fmt::format("--et {}: {} joins {} already; expected one ExecutionTrace for each capture.",
                                   trace.string(), file.execution_trace.string(), file.capture.string()));
    file.execution_trace = trace;
    if (!by_rank)
      out_.notes.push_back(fmt::format("{} joins {} by the order in which they were given: ranks are not told.",
                                       trace.string(), file.capture.string()));
  }

  JobFiles out_;
  std::vector<fs::path> traces_;
  std::set<fs::path> of_folder_;     // of these, those that a folder holds
  std::vector<std::int64_t> ranks_;  // of the files, once they are asked for
};

}  // namespace

bool stands_for_several(const fs::path& path) {
  std::error_code error;
  return fs::is_directory(path, error) || !files_in_archive(path).empty();
}

JobFile file_of_rank(const JobFiles& job, std::uint32_t rank) {
  std::vector<std::int64_t> ranks;
  for (const JobFile& file : job.files) ranks.push_back(captured_rank(file.capture));
  const bool told = std::ranges::any_of(ranks, [](std::int64_t r) { return r >= 0; });
  const auto found = std::ranges::find(ranks, std::int64_t{rank});
  if (told && found != ranks.end()) return job.files[static_cast<std::size_t>(found - ranks.begin())];
  if (!told && rank < job.files.size()) return job.files[rank];
  constexpr std::size_t kNamed = 16;
  std::string names;
  for (std::size_t i = 0; i < std::min(kNamed, ranks.size()); ++i)
    names += fmt::format("{}{} ({})", names.empty() ? "" : ", ",
                         told ? (ranks[i] < 0 ? "unknown" : std::to_string(ranks[i])) : std::to_string(i),
                         job.files[i].capture.filename().string());
  throw UsageError(fmt::format("--rank {}: the captures are of the ranks {}{}{}; expected one of these.", rank, names,
                               ranks.size() > kNamed ? ", ..." : "",
                               told ? "" : ", by their order, as they do not say it"));
}

void require_rank(const fs::path& capture, std::uint32_t rank) {
  const std::int64_t told = captured_rank(capture);
  if (told == rank) return;
  throw UsageError(
      fmt::format("--rank {}: {} holds one rank{}; expected captures of several ranks, or a file of several.", rank,
                  capture.string(), told < 0 ? "" : fmt::format(", {}", told)));
}

JobFiles job_files(const std::vector<fs::path>& given, const std::vector<fs::path>& execution_traces) {
  Sorter sorter;
  for (const fs::path& path : given) sorter.take(path, given.size() == 1);
  return std::move(sorter).match(execution_traces);
}

}  // namespace memwall
