#include "gui/model/open_run.h"

#include <filesystem>

namespace memwall::gui {
OpenRun open_in_viewer(const std::string& path, const LoadProgress& progress) {
  OpenRun run{path, std::filesystem::path(path).filename().string(), open_run(path, progress), {}, {}, {}};
  run.spans = std::make_shared<SpanCache>(run.source);
  return run;
}
}  // namespace memwall::gui
