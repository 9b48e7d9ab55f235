#include "cli/sweep_command.h"

#include <fmt/format.h>

#include <ostream>
#include <utility>

#include "cli/one_line.h"
#include "cli/output_file.h"
#include "cli/print/screen.h"
#include "cli/print/sweep_tables.h"
#include "cli/print/table.h"
#include "cli/terminal.h"
#include "sim/error.h"
#include "sim/files/file_writer.h"
#include "sim/human_text.h"

namespace memwall {
namespace {

bool is_study(const std::vector<std::string>& step) { return step.size() == 1 && step.front().ends_with(kStudyEnding); }

void write_files(const SweepFiles& files, const SweepResult& result) {
  const auto write = [](const std::string& path, const auto& text) {
    if (!path.empty()) write_output(path, [&](std::ostream& out) { out << text(); });
  };
  write(files.csv, [&] { return sweep_csv(result); });
  write(files.ndjson, [&] { return sweep_ndjson(result); });
  write(files.json, [&] { return sweep_json(result); });
}

std::string report_of(const SweepOptions& o, const StudyFile& study, const SweepResult& result, Format format) {
  if (format == Format::json) return sweep_json(result);
  if (format == Format::csv) return sweep_csv(result);
  // Those that nobody asked for need not be known: a capture may not say its memory.
  const std::vector<std::string> fields =
      study.fields.empty() ? std::vector<std::string>{"fits", "step_time_s", "peak"} : study.fields;
  return screen_text(sweep_tables(result, fields, study.title), format, o.points.full);
}

// The commands of points that ran, the best first where there is an objective.
std::string lines_of(const SweepOptions& o, const SweepResult& result) {
  std::string text;
  for (const std::size_t i : order_of(result))
    if (result.points[i].ran()) text += one_line(result.points[i].scenario, o.points.accept_gaps) + "\n";
  return text;
}

}  // namespace

StudyFile study_of(const SweepOptions& o, bool needs_step) {
  StudyFile given = o.study;
  StudyFile study;
  if (is_study(given.base.step)) {
    study = load_study_file(given.base.step.front());
    given.base.step.clear();
  }
  if (!o.preset.empty()) study = merged(load_study_preset(o.preset), study);
  study = merged(std::move(study), given);
  for (const std::string& axis : study.axes)
    if (study.base.step.empty() && axis.starts_with("step=")) study.base.step = {parse_axis(axis).values.front()};
  if (study.base.step.empty() && needs_step)
    throw UsageError(
        "The step is missing; expected a trace, a capture or a network's name, in the command or as step: in the "
        "study.");
  return study;
}

SweepRequest request_of(const PointsOptions& points, const StudyFile& study) {
  SweepRequest request{.base = study.base,
                       .space = {},
                       .conditions = study.conditions,
                       .objective = study.objective,
                       .fields = study.fields,
                       .jobs = jobs_or_all(points.jobs),
                       .accept_gaps = points.accept_gaps,
                       .written_out = points.written_out};
  request.space = space_of(study, request.base);
  if (request.space.axes.empty())
    throw UsageError(
        "There is no axis; expected one or several, as in --over policy=none|checkpoint, "
        "--machine a100-sxm-80gb,h100-sxm-80gb or --preset links.");
  return request;
}

std::vector<std::filesystem::path> inputs_of(const std::vector<std::string>& steps, const StudyFile& study,
                                             const SweepRequest& request) {
  std::vector<std::string> names = study.base.step;
  for (const std::vector<std::string>* more : {&steps, &study.base.execution_traces, &study.machines})
    names.insert(names.end(), more->begin(), more->end());
  names.insert(names.end(), {study.base.onto, study.base.measured_on});
  for (const Axis& axis : request.space.axes) names.insert(names.end(), axis.values.begin(), axis.values.end());
  std::vector<std::filesystem::path> files;
  for (const std::string& name : names)
    if (std::error_code error; !name.empty() && std::filesystem::exists(name, error)) files.emplace_back(name);
  return files;
}

void require_own_places(const SweepFiles& files, const std::string& journal, const SweepPictures& pictures,
                        const std::vector<std::filesystem::path>& inputs) {
  std::vector<std::pair<const char*, std::string>> places{
      {"--csv", files.csv}, {"--ndjson", files.ndjson}, {"--json", files.json}, {"--journal", journal}};
  for (const std::string& file : pictures.files()) places.emplace_back("--figure", file);
  const auto whole = [](const std::string& place) {
    std::error_code error;
    return place == "-" ? std::filesystem::path(place)
                        : std::filesystem::weakly_canonical(std::filesystem::absolute(place), error);
  };
  for (const auto& one : places)
    for (const auto& other : places)
      if (&one < &other && !one.second.empty() && !other.second.empty() && whole(one.second) == whole(other.second))
        throw UsageError(
            fmt::format("{} and {} both name \"{}\"; expected two places.", one.first, other.first, one.second));
  for (const std::string& path : files.all()) {
    require_harmless(path, inputs);
    if (!path.empty() && path != "-") (void)FileWriter(path);  // told before a long study
  }
}

int answer_sweep(const SweepOptions& o, const StudyFile& study, const SweepRequest& request, const SweepResult& result,
                 const SweepPictures& pictures) {
  // The answer first: a file that cannot be written does not take it away.
  const SweepFiles& files = o.files;
  const bool prints_a_file = files.csv == "-" || files.ndjson == "-" || files.json == "-";
  print_beside(prints_a_file ? "-" : "",
               o.one_line ? lines_of(o, result) : report_of(o, study, result, parse_format(o.points.format)));
  write_files(files, result);
  const int painted = pictures.write(request, result);
  // Not in the answer, which is the same however often a study was stopped.
  if (result.kept() > 0)
    print_error("memwall sweep: {} of {} came from {}.\n", result.kept(), counted_text(result.points.size(), "point"),
                o.points.journal.place());
  if (painted != 0 || result.failures() == 0) return painted;
  print_error("memwall sweep: {} of {} failed.\n", result.failures(), counted_text(result.points.size(), "point"));
  return kPointsFailed;
}

}  // namespace memwall
