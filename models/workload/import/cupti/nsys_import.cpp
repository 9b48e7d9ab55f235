#include "models/workload/import/cupti/nsys_import.h"

#include <utility>
#include <vector>

#include "models/workload/import/bytes/sqlite_database.h"
#include "models/workload/import/cupti/nsys_records.h"
#include "models/workload/import/cupti/range_shapes.h"
#include "models/workload/import/timed/import_decisions.h"

namespace memwall {
bool recognizes_nsys(const FileHead& head) { return is_sqlite(head.raw); }

CuptiCapture read_nsys(const std::filesystem::path& path, const std::string& step_range,
                       std::optional<std::uint32_t> rank) {
  return convert_cupti_records(read_nsys_records(path, rank), step_range);
}

ImportedStep import_nsys(const std::filesystem::path& path, const ImportSettings& settings) {
  const CuptiCapture capture = read_nsys(path, settings.step_range, settings.rank);
  ImportedTrace imported = import_cupti_capture(capture);
  std::vector<Decision> decisions = import_decisions(capture.capture, imported);
  for (Decision& decision : add_range_shapes(capture.capture, imported)) decisions.push_back(std::move(decision));
  return cupti_step(capture, std::move(imported), std::move(decisions));
}

}  // namespace memwall
