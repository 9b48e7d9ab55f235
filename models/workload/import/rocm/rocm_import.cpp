#include "models/workload/import/rocm/rocm_import.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "models/workload/import/bytes/sqlite_database.h"
#include "models/workload/import/cupti/range_shapes.h"
#include "models/workload/import/rocm/rocm_records.h"
#include "models/workload/import/rocm/rocpd_reader.h"
#include "models/workload/import/rocm/rocprof_json.h"
#include "models/workload/import/timed/import_decisions.h"

namespace memwall {

bool recognizes_rocpd(const FileHead& head) { return is_sqlite(head.raw) && has_rocpd_tables(head.path); }

bool recognizes_rocprof_json(const FileHead& head) {
  return std::find(head.members.begin(), head.members.end(), "rocprofiler-sdk-tool") != head.members.end();
}

CuptiCapture read_rocm(const std::filesystem::path& path, const std::string& step_range,
                       std::optional<std::uint32_t> rank) {
  const RocmProfile profile = is_sqlite(read_file_head(path).raw) ? read_rocpd(path) : read_rocprof_json(path);
  return convert_cupti_records(rocm_records(profile, rank), step_range);
}

ImportedStep import_rocm(const std::filesystem::path& path, const ImportSettings& settings) {
  const CuptiCapture capture = read_rocm(path, settings.step_range, settings.rank);
  ImportedTrace imported = import_cupti_capture(capture);
  std::vector<Decision> decisions = import_decisions(capture.capture, imported);
  for (Decision& decision : add_range_shapes(capture.capture, imported)) decisions.push_back(std::move(decision));
  return cupti_step(capture, std::move(imported), std::move(decisions));
}

}  // namespace memwall
