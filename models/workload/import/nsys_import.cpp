#include "models/workload/import/nsys_import.h"

#include <string_view>
#include <utility>
#include <vector>

#include "models/workload/import/kineto_decisions.h"
#include "models/workload/import/kineto_step.h"
#include "models/workload/import/nsys_records.h"

namespace memwall {

bool recognizes_nsys(const FileHead& head) { return head.raw.starts_with(std::string_view("SQLite format 3\0", 16)); }

InjectCapture read_nsys(const std::filesystem::path& path, const ImportSettings& settings) {
  return convert_inject(read_nsys_records(path), {settings.step_range});
}

ImportedTrace import_nsys(const InjectCapture& capture) {
  ImportedTrace imported = import_kineto(capture.capture);
  for (const std::string_view ending : {".sqlite", ".db"})
    if (imported.trace.name.ends_with(ending)) imported.trace.name.resize(imported.trace.name.size() - ending.size());
  imported.trace.notes.insert(imported.trace.notes.begin(), capture.notes.begin(), capture.notes.end());
  return imported;
}

ImportedStep import_nsys(const std::filesystem::path& path, const ImportSettings& settings) {
  const InjectCapture capture = read_nsys(path, settings);
  ImportedTrace imported = import_nsys(capture);
  std::vector<Decision> decisions = kineto_decisions(capture.capture, imported);
  for (const std::string& note : capture.notes) decisions.push_back({"recorded", note, 0, 0});
  ImportedStep step = step_of(std::move(imported), capture.capture);
  step.decisions = std::move(decisions);
  return step;
}

}  // namespace memwall
