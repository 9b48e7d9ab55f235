#include "traces/run/run_source.h"

#include "sim/error.h"

namespace memwall {
std::size_t SpanBlock::bytes() const { return 0; }
std::unique_ptr<RunSource> source_of(std::shared_ptr<const Run>) { throw UsageError("not implemented."); }
std::unique_ptr<RunSource> open_run(const std::filesystem::path&, const LoadProgress&) {
  throw UsageError("not implemented.");
}
}  // namespace memwall
