// The tables of a run, in two parts: what is there whatever its length, and what grows with it. Internal to traces/run.
#pragma once

#include "traces/run/file/column_file.h"
#include "traces/run/file/run_check.h"
#include "traces/run/run.h"

namespace memwall {

// Everything but ops, uses, storages, strings, records, moves and series. Throws InputError.
void read_small_parts(const ReadContext& context, hid_t file, Run& run);
// The rest. REQUIRES: the small parts are there.
void read_large_parts(const ReadContext& context, hid_t file, Run& run);
// Of the rest what read_run_ops gives. Returns how many of all there are in the file.
RunCounts read_op_parts(const ReadContext& context, hid_t file, Run& run);

}  // namespace memwall
