#include "traces/run/run_source.h"

#include "traces/run/run_file.h"

namespace memwall {

std::unique_ptr<RunSource> open_run(const std::filesystem::path& path, const LoadProgress&) {
  return source_of(std::make_shared<Run>(read_run(path)));
}

}  // namespace memwall
