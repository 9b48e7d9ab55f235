#include "models/workload/import/cupti/inject_import.h"

#include "models/workload/import/cupti/inject_reader.h"
#include "models/workload/import/timed/import_decisions.h"

namespace memwall {

CuptiCapture read_inject(const std::filesystem::path& path, const std::string& step_range) {
  return convert_cupti_records(read_inject_records(path), step_range);
}

bool recognizes_inject(const FileHead& head) { return is_mwi(head.raw); }

ImportedStep import_inject(const std::filesystem::path& path, const ImportSettings& settings) {
  const CuptiCapture capture = read_inject(path, settings.step_range);
  ImportedTrace imported = import_cupti_capture(capture);
  std::vector<Decision> decisions = import_decisions(capture.capture, imported);
  return cupti_step(capture, std::move(imported), std::move(decisions));
}

}  // namespace memwall
