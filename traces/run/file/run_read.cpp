// A run from disk, whole.
#include "traces/run/file/user_block.h"
#include "traces/run/file/run_check.h"
#include "traces/run/file/run_file.h"
#include "traces/run/file/run_tables.h"
#include "traces/run/file/checksummed_file.h"

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

bool is_run_file(const std::filesystem::path& path) { return has_run_magic(path); }

}  // namespace memwall
