#include "study/sweep/study_file.h"

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include <algorithm>
#include <utility>

#include <sweep/study.pb.h>  // generated from study.proto
#include "sim/error.h"
#include "sim/files/data_folder.h"
#include "sim/files/input_file.h"
#include "study/sweep/axis.h"
#include "study/text_parts.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLargestFile = 1 << 20;

std::string nearest_key(const std::string& message) {
  const std::string before = "has no field named \"";
  const std::size_t at = message.find(before);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + before.size();
  std::vector<std::string> keys;
  const auto* type = study_schema::Study::descriptor();
  for (int i = 0; i < type->field_count(); ++i) keys.push_back(type->field(i)->name());
  const std::string key = message.substr(begin, message.find('"', begin) - begin);
  return fmt::format("unknown key \"{}\"; expected one of {}.{}", key, listed(keys), did_you_mean(key, keys));
}

// The first complaint, as a sentence with its line.
class FirstComplaint : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int, const std::string& message) override {
    if (!sentence_.empty()) return;
    const std::string key = nearest_key(message);
    sentence_ = fmt::format("line {}: {}", line + 1,
                            key.empty() ? fmt::format("the text is not well formed: {}; expected lines such as over: "
                                                      "\"policy=none|checkpoint\".",
                                                      message)
                                        : key);
  }
  void AddWarning(int, int, const std::string&) override {}
  const std::string& sentence() const { return sentence_; }

 private:
  std::string sentence_;
};

template <class Field>
std::vector<std::string> list_of(const Field& field) {
  return {field.begin(), field.end()};
}

fs::path preset_folder() { return data_folder("MEMWALL_STUDIES", "studies", MEMWALL_STUDY_DIR); }

// What stands beside the study file is named from there.
void resolve(std::string& name, const fs::path& folder) {
  if (name.empty() || fs::path(name).is_absolute()) return;
  std::error_code error;
  if (fs::exists(folder / name, error)) name = (folder / name).lexically_normal().string();
}

void append(std::vector<std::string>& list, const std::vector<std::string>& more) {
  list.insert(list.end(), more.begin(), more.end());
}

void replace(std::vector<std::string>& list, const std::vector<std::string>& by) {
  if (!by.empty()) list = by;
}

void replace(std::string& word, const std::string& by) {
  if (!by.empty()) word = by;
}

std::string name_of_axis(const std::string& text) { return text.substr(0, text.find('=')); }

}  // namespace

StudyFile parse_study_file(const std::string& text, const std::string& name) {
  study_schema::Study read;
  FirstComplaint complaint;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&complaint);
  if (!parser.ParseFromString(text, &read) || !complaint.sentence().empty())
    throw InputError(fmt::format("{}: {}", name,
                                 complaint.sentence().empty() ? "found no study; expected lines such as over: "
                                                                "\"policy=none|checkpoint\"."
                                                              : complaint.sentence()));
  return {.title = read.title(),
          .base = {.step = list_of(read.step()),
                   .execution_traces = list_of(read.execution_trace()),
                   .onto = read.onto(),
                   .measured_on = read.measured_on(),
                   .settings = list_of(read.set()),
                   .scale = list_of(read.scale()),
                   .policies = list_of(read.policy())},
          .machines = list_of(read.machine()),
          .axes = list_of(read.over()),
          .zips = list_of(read.zip()),
          .conditions = list_of(read.where()),
          .fields = list_of(read.show()),
          .figures = list_of(read.figure()),
          .sample = read.sample(),
          .objective = read.objective()};
}

std::string study_text(const StudyFile& study) {
  study_schema::Study out;
  const auto add = [&](const std::vector<std::string>& words, void (study_schema::Study::*adder)(const std::string&)) {
    for (const std::string& word : words) (out.*adder)(word);
  };
  using Out = study_schema::Study;
  if (!study.title.empty()) out.set_title(study.title);
  if (!study.base.onto.empty()) out.set_onto(study.base.onto);
  if (!study.base.measured_on.empty()) out.set_measured_on(study.base.measured_on);
  if (!study.sample.empty()) out.set_sample(study.sample);
  if (!study.objective.empty()) out.set_objective(study.objective);
  add(study.base.step, &Out::add_step);
  add(study.base.execution_traces, &Out::add_execution_trace);
  add(study.machines, &Out::add_machine);
  add(study.base.settings, &Out::add_set);
  add(study.base.policies, &Out::add_policy);
  add(study.base.scale, &Out::add_scale);
  add(study.axes, &Out::add_over);
  add(study.zips, &Out::add_zip);
  add(study.conditions, &Out::add_where);
  add(study.fields, &Out::add_show);
  add(study.figures, &Out::add_figure);
  std::string text;
  google::protobuf::TextFormat::PrintToString(out, &text);
  return text;
}

StudyFile load_study_file(const fs::path& path) {
  StudyFile study = parse_study_file(content_of_file(path, kLargestFile, "a study"), path.string());
  const fs::path folder = path.parent_path();
  for (std::vector<std::string>* list : {&study.base.step, &study.base.execution_traces, &study.machines})
    for (std::string& name : *list) resolve(name, folder);
  for (std::string* name : {&study.base.onto, &study.base.measured_on}) resolve(*name, folder);
  return study;
}

std::vector<std::string> study_presets() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(preset_folder(), error))
    if (entry.path().extension() == kStudyEnding) names.push_back(entry.path().stem().string());
  if (error)
    throw InputError(fmt::format("{}: {}; expected the studies that memwall comes with.", preset_folder().string(),
                                 error.message()));
  std::ranges::sort(names);
  return names;
}

StudyFile load_study_preset(const std::string& name) {
  const std::vector<std::string> known = study_presets();
  if (std::ranges::find(known, name) == known.end())
    throw UsageError(fmt::format("There is no preset \"{}\"; expected one of {}.{}", name, listed(known),
                                 did_you_mean(name, known)));
  return load_study_file(preset_folder() / (name + kStudyEnding));
}

StudyFile merged(StudyFile file, const StudyFile& given) {
  replace(file.title, given.title);
  replace(file.base.step, given.base.step);
  replace(file.base.execution_traces, given.base.execution_traces);
  replace(file.base.onto, given.base.onto);
  replace(file.base.measured_on, given.base.measured_on);
  append(file.base.settings, given.base.settings);
  append(file.base.policies, given.base.policies);
  append(file.base.scale, given.base.scale);
  replace(file.machines, given.machines);
  // One that is given twice stays twice, which is refused with its name.
  const std::vector<std::string> own = std::exchange(file.axes, {});
  for (const std::string& axis : own)
    if (std::ranges::find(given.axes, name_of_axis(axis), name_of_axis) == given.axes.end()) file.axes.push_back(axis);
  append(file.axes, given.axes);
  append(file.zips, given.zips);
  append(file.conditions, given.conditions);
  append(file.figures, given.figures);
  replace(file.fields, given.fields);
  replace(file.sample, given.sample);
  replace(file.objective, given.objective);
  return file;
}

SweepSpace space_of(const StudyFile& study, Scenario& base) {
  SweepSpace space;
  if (study.machines.size() == 1) base.machine = study.machines.front();
  if (study.machines.size() > 1) space.axes.push_back({.name = "machine", .values = study.machines});
  for (const std::string& text : study.axes) space.axes.push_back(parse_axis(text));
  for (const std::string& zip : study.zips) space.zips.push_back(parts_of(zip, ','));
  if (!study.sample.empty()) set_sampling(study.sample, space);
  return space;
}

}  // namespace memwall
