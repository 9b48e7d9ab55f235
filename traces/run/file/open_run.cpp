#include "traces/run/run_source.h"

#include <utility>

#include "traces/run/file/run_file_source.h"

namespace memwall {

std::unique_ptr<RunSource> open_run(const std::filesystem::path& path, const LoadProgress& progress) {
  report(progress, 0);
  auto file = std::make_unique<RunInFile>(path);
  if (file->has_index()) return file;
  return source_of(file->whole(progress));
}

}  // namespace memwall
