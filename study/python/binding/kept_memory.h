// What of the memory that runs give back stays with the process.
#pragma once

namespace memwall {

// From now on up to 64 MB, so that the next run of a loop finds what the last one had: a run of a small step that
// obtains it anew takes a tenth longer. Nothing where the environment sets the allocator (MALLOC_TRIM_THRESHOLD_,
// MALLOC_MMAP_THRESHOLD_, GLIBC_TUNABLES), or where it is not glibc's.
void keep_memory_for_runs();

// All that is free goes back to the system: a step has ended, which may have been large.
void give_back_memory();

}  // namespace memwall
