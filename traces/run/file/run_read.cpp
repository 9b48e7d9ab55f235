// A run from disk: whole, or its ops.
#include <algorithm>

#include "traces/run/file/user_block.h"
#include "traces/run/file/run_check.h"
#include "traces/run/file/run_file.h"
#include "traces/run/file/run_tables.h"
#include "traces/run/file/checksummed_file.h"
#include "traces/run/run_outline_source.h"

namespace memwall {

Run read_run(const std::filesystem::path& path) {
  verify_checksums(path);
  ChecksummedFile checksummed(path);
  const ReadContext context{path.string(), checksummed.length(), &checksummed, {}};
  const Hdf5Handle file = checksummed.open_hdf5();
  if (!file.valid()) context.refuse("its checksums match, but HDF5 cannot open it.");
  Run run;
  read_small_parts(context, file.get(), run);
  read_large_parts(context, file.get(), run);
  require_consistent(run, context);
  find_rank_views(run, context);
  return run;
}

Run read_run_ops(const std::filesystem::path& path, const LoadProgress& progress) {
  ChecksummedFile checksummed(path);
  ReadContext context{path.string(), checksummed.length(), &checksummed, {}};
  const Hdf5Handle file = checksummed.open_hdf5();
  if (!file.valid()) context.refuse("its checksums match, but HDF5 cannot open it.");
  Run run;
  read_small_parts(context, file.get(), run);
  const double ops = static_cast<double>(table_rows(context, file.get(), "ops"));
  std::size_t done = 0;
  context.on_rows = [&](std::size_t rows) {
    done += rows;
    report(progress, std::min(1.0, static_cast<double>(done) / (2 * ops + 1)));
  };
  const RunCounts counts = read_op_parts(context, file.get(), run);
  require_consistent_ops(run, counts, context);
  find_rank_views(run, context);
  return run;
}

bool is_run_file(const std::filesystem::path& path) { return has_run_magic(path); }

}  // namespace memwall
