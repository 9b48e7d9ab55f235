#include "study/workload_file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <optional>

#include "models/hw/machine_file.h"
#include "models/hw/traffic.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "models/workload/import/bytes/archive_source.h"
#include "models/workload/import/bytes/file_head.h"
#include "models/workload/import/ranks/job_files.h"
#include "models/workload/import/ranks/rank_join.h"
#include "models/workload/import/trace_coverage.h"
#include "sim/error.h"
#include "sim/files/input_file.h"
#include "sim/trace/trace_check.h"
#include "study/captured_recipe.h"
#include "study/generated_step.h"
#include "study/measured_machine.h"
#include "traces/run/file/run_file.h"
#include "traces/trace/trace_file.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

constexpr const char *kTrace = "memwall trace", *kGenerated = "generated step";

std::string expected_noun() {
  std::string names;
  for (const Importer& importer : importers()) names += importer.name + ", ";
  return fmt::format(
      "a memwall trace (.mwt), a format that `memwall import --formats` explains ({}told apart by content), "
      "or a network to generate: a name that `memwall generate --list` shows, a .textproto or a Hugging Face "
      "config.json",
      names);
}

std::string expected() { return "expected " + expected_noun(); }

// " and no such workload", unless what was given is a file's path: a folder that exists in front, or an extension of
// letters. Settings behind a name are left away, as is the owner of a name on Hugging Face's hub ("owner/name").
std::string near_workload(const fs::path& path) {
  const std::string text = path.string().substr(0, 100);
  const fs::path name = text.substr(0, text.find(':'));
  const std::string extension = name.extension().string();
  const auto letter = [](unsigned char c) { return std::isalpha(c) != 0; };
  if (!extension.empty() && std::all_of(extension.begin() + 1, extension.end(), letter)) return "";
  std::error_code error;
  const fs::path owner = name.parent_path();
  if (!owner.empty() && (owner.has_parent_path() || fs::exists(owner, error))) return "";
  const std::string near = nearest_workload(name.filename().string());
  return near.empty() ? "" : fmt::format(" and no such workload (nearest: \"{}\")", near);
}

// A name, or a file with settings behind it ("mine.textproto:batch=2").
bool is_generated(const fs::path& path) {
  std::error_code error;
  if (fs::exists(path, error)) return path.extension() == ".textproto";
  return names_workload(path.string()) || path.string().find(".textproto:") != std::string::npos ||
         path.string().find(".json:") != std::string::npos;
}

void require_readable(const fs::path& path) {
  std::error_code error;
  const fs::path file = split_archive_path(path).file;
  const fs::file_status status = fs::status(file, error);
  if (!fs::exists(status))
    throw InputError(
        fmt::format("{}: there is no such file{}; expected a trace or a capture (`memwall import --formats` "
                    "lists what is read), or a network (`memwall generate --list`).",
                    path.string(), near_workload(path)));
  if (fs::is_directory(status)) throw InputError(fmt::format("{}: this is a folder; {}.", path.string(), expected()));
  readable_path(file, expected_noun());
}

bool is_network(const FileHead& head) {
  constexpr std::string_view names[] = {"model_type", "architectures", "_name_or_path", "hidden_size"};
  return std::any_of(head.members.begin(), head.members.end(), [&](const std::string& member) {
    return std::find(std::begin(names), std::end(names), member) != std::end(names);
  });
}

[[noreturn]] void refuse(const FileHead& head) {
  const std::string path = head.path.string();
  if (head.text.empty()) throw InputError(fmt::format("{}: the file is empty; {}.", path, expected()));
  if (const std::string what = unsupported_file_hint(head); !what.empty())
    throw InputError(fmt::format("{}: {}; {}.", path, what, expected()));
  std::string members;
  for (std::size_t i = 0; i < std::min<std::size_t>(head.members.size(), 8); ++i)
    members += fmt::format("{}\"{}\"", i == 0 ? ", an object with " : ", ", printable_prefix(head.members[i]));
  throw InputError(fmt::format("{}: the file is of an unknown kind, it begins with \"{}\"{}; {}.", path,
                               printable_prefix(head.text), members, expected()));
}

struct Kind {
  std::string name;
  const Importer* importer = nullptr;  // of a foreign format
};

Kind find_kind(const fs::path& path) {
  if (is_generated(path)) return {kGenerated};
  require_readable(path);
  const bool in_archive = !split_archive_path(path).member.empty();
  if (!in_archive && is_trace_file(path)) return {kTrace};
  if (!in_archive && is_run_file(path))
    throw InputError(
        fmt::format("{}: this is a run file, the result of `memwall run`; {}.", path.string(), expected()));
  FileHead head = read_file_head(path);
  if (is_network(head)) return {kGenerated};
  if (const Importer* importer = find_importer(head)) return {importer->name, importer};
  if (is_network(head)) return {kGenerated};
  refuse(head);
}

void require_taken(const Kind& kind, const ImportSettings& settings, const fs::path& path) {
  const auto refuse_unless = [&](bool Importer::*takes, const std::string& given, const char* what) {
    if (given.empty() || (kind.importer != nullptr && kind.importer->*takes)) return;
    std::string names;
    for (const Importer& importer : importers())
      if (importer.*takes) names += fmt::format("{}a {}", names.empty() ? "" : " or ", importer.name);
    throw UsageError(fmt::format("{}: expected beside {}; {} is a {}.", fmt::format(fmt::runtime(what), given), names,
                                 path.string(), kind.name));
  };
  refuse_unless(&Importer::takes_execution_trace, settings.execution_trace.string(), "--et {}");
  refuse_unless(&Importer::takes_step_range, settings.step_range, "--step-range {}");
  if (!settings.rank || (kind.importer != nullptr && kind.importer->takes_rank)) return;
  require_rank(path, *settings.rank);
}

ImportedStep import_step(const Importer& importer, const fs::path& path, const ImportSettings& settings, Watch* watch) {
  if (!settings.execution_trace.empty()) require_readable(settings.execution_trace);
  const auto reading = watch != nullptr ? watch->reading(split_archive_path(path).file) : nullptr;
  return importer.import(path, settings);
}

Workload workload_of(ImportedStep step, std::string kind, const std::string& measured_on) {
  Workload workload;
  workload.kind = std::move(kind);
  workload.trace = std::move(step.trace);
  workload.note_kinds = std::move(step.note_kinds);
  const std::size_t own = workload.trace.notes.size();
  name_machine(step, workload.trace, measured_on);
  const NoteKind of_machine = !measured_on.empty()                  ? NoteKind::assumed
                              : has_machine(workload.trace.machine) ? NoteKind::counted
                                                                    : NoteKind::missing;
  for (std::size_t i = own; i < workload.trace.notes.size(); ++i)
    workload.note_kinds.insert_or_assign(workload.trace.notes[i], of_machine);
  if (!(step.gpu.empty() && measured_on.empty()) &&
      has_machine(workload.trace.machine))  // with the traffic that the machine makes possible
    workload.trace = with_possible_traffic(std::move(workload.trace), load_machine(workload.trace.machine));
  if (workload.trace.recipe.empty()) workload.trace.recipe = captured_recipe(workload.trace);
  workload.report = std::move(step.report);
  workload.decisions = std::move(step.decisions);
  for (const Decision& decision : workload.decisions)
    if (decision.kind != NoteKind::counted)
      for (std::string note : {decision.sentence, note_of(decision)})
        workload.note_kinds.insert_or_assign(std::move(note), decision.kind);
  workload.calls = std::move(step.calls);
  for (Decision& decision : coverage_of(workload.trace)) workload.decisions.push_back(std::move(decision));
  for (const fs::path& file : step.files) {
    fs::path read = split_archive_path(file).file;
    if (std::ranges::find(workload.files, read) == workload.files.end()) workload.files.push_back(std::move(read));
  }
  return workload;
}

Workload load_import(const Importer& importer, const fs::path& path, const ImportSettings& settings,
                     const std::string& measured_on, Watch* watch) {
  ImportedStep step = import_step(importer, path, settings, watch);
  describe_rank(step);
  return workload_of(std::move(step), importer.name, measured_on);
}

// What was left out is told with every result: a damaged capture of a rank may be among it.
void tell_of_files(const JobFiles& job, Workload& workload) {
  workload.report.insert(workload.report.begin(), job.left_out.begin(), job.left_out.end());
  workload.report.insert(workload.report.begin(), job.notes.begin(), job.notes.end());
  if (job.left_out.empty()) return;
  std::vector<std::string>& notes = workload.trace.notes;
  notes.insert(notes.begin(), job.left_out.begin(), job.left_out.end());
  for (const std::string& sentence : job.left_out) workload.note_kinds.insert_or_assign(sentence, NoteKind::missing);
}

Workload load_ranks(const JobFiles& job, const JobSettings& job_settings, Watch* watch) {
  std::vector<ImportedStep> steps;
  std::string kind;
  for (const JobFile& file : job.files) {
    const Kind found = find_kind(file.capture);
    const ImportSettings settings{file.execution_trace, job_settings.step_range, {}};
    require_taken(found, settings, file.capture);
    if (found.importer == nullptr)
      throw UsageError(fmt::format("{}: several files are captures of the ranks of one job; this is a {}.",
                                   file.capture.string(), found.name));
    steps.push_back(import_step(*found.importer, file.capture, settings, watch));
    kind = found.name;
  }
  Workload workload = workload_of(joined_steps(std::move(steps)), fmt::format("{} ranks, {}", job.files.size(), kind),
                                  job_settings.measured_on);
  tell_of_files(job, workload);
  return workload;
}

}  // namespace

bool is_generated_step(const std::string& step) {
  std::error_code error;
  return is_generated(step) || (fs::is_regular_file(step, error) && kind_of_workload(step) == "generated step");
}

std::string kind_of_workload(const fs::path& path) { return find_kind(path).name; }

Workload load_workload(const fs::path& path, const ImportSettings& settings, const std::string& measured_on,
                       Watch* watch) {
  require_machine(measured_on);
  const Kind kind = find_kind(path);
  require_taken(kind, settings, path);
  if (kind.importer != nullptr) return load_import(*kind.importer, path, settings, measured_on, watch);
  Workload workload;
  workload.kind = kind.name;
  if (kind.name == kGenerated) {
    GeneratedStep step = generated_step(path.string(), {});
    workload.trace = std::move(step.trace);
    workload.files = std::move(step.files);
    workload.is_checked = true;
    name_machine(workload.trace, measured_on);
    return workload;
  }
  workload.files.push_back(path);
  const auto reading = watch != nullptr ? watch->reading(path) : nullptr;
  workload.trace = read_trace(path);
  workload.is_checked = true;
  name_machine(workload.trace, measured_on);
  return workload;
}

Workload load_workload(const std::vector<fs::path>& paths, const std::vector<fs::path>& execution_traces,
                       const JobSettings& settings, Watch* watch) {
  require_machine(settings.measured_on);
  std::error_code error;
  const bool has_trace_folder =
      std::ranges::any_of(execution_traces, [&](const fs::path& path) { return fs::is_directory(path, error); });
  const auto load_one = [&](const fs::path& capture, const fs::path& execution_trace, bool chosen) {
    const std::optional<std::uint32_t> rank = chosen ? std::nullopt : settings.rank;
    return load_workload(capture, {execution_trace, settings.step_range, rank}, settings.measured_on, watch);
  };
  if (paths.size() == 1 && execution_traces.size() <= 1 && !has_trace_folder && !stands_for_several(paths.front()))
    return load_one(paths.front(), execution_traces.empty() ? fs::path() : execution_traces.front(), false);
  for (const fs::path& path : paths)
    if (!fs::is_directory(path, error) && !is_generated(path)) require_readable(path);
  const JobFiles job = job_files(paths, execution_traces);
  if (job.files.empty())
    throw UsageError(fmt::format(
        "{}: these are ExecutionTraces alone; expected the captures of their ranks beside them.", title_of(paths)));
  if (job.files.size() == 1 || settings.rank) {
    const bool chosen = job.files.size() > 1;
    const JobFile file = chosen ? file_of_rank(job, *settings.rank) : job.files.front();
    Workload workload = load_one(file.capture, file.execution_trace, chosen);
    tell_of_files(job, workload);
    return workload;
  }
  return load_ranks(job, settings, watch);
}

std::string title_of(const std::vector<fs::path>& paths) {
  if (paths.empty()) return "";
  const std::string first = paths.front() == kStandardInput ? "standard input" : paths.front().string();
  return first + (paths.size() > 1 ? fmt::format(" and {} more", paths.size() - 1) : "");
}

std::string hash_of_file(const fs::path& path) {
  std::ifstream in(readable_path(path), std::ios::binary);
  if (!in) throw InputError(fmt::format("{}: the file cannot be opened.", path.string()));
  std::vector<char> buffer(1 << 20);
  uLong sum = crc32(0, nullptr, 0);
  while (in.read(buffer.data(), static_cast<std::streamsize>(buffer.size())), in.gcount() > 0)
    sum = crc32(sum, reinterpret_cast<const Bytef*>(buffer.data()), static_cast<uInt>(in.gcount()));
  return fmt::format("crc32:{:08x}", sum);
}

}  // namespace memwall
