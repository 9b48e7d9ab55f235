#include "traces/run/run_source.h"

#include "traces/run/file/run_file_source.h"

namespace memwall {

std::unique_ptr<RunSource> open_run(const std::filesystem::path& path, const LoadProgress& progress) {
  report(progress, 0);
  return std::make_unique<RunInFile>(path);
}

}  // namespace memwall
