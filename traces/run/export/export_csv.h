// A run as a table: one line per op, for spreadsheets and scripts.
#pragma once

#include <iosfwd>

#include "traces/run/run.h"

namespace memwall {

// RFC 4180, with a line of column names first. Times are microseconds from the start of the run with
// all digits; a field is empty where the op has no such part (no device work, no cause).
//
// op,kind,name,operator,module,phase,origin,thread,stream,host_start_us,host_end_us,device_start_us,
// device_end_us,host_reason,host_cause,device_reason,device_cause,return_reason,return_cause,bytes,flops,
// from,to,storage
//
// `*_reason` is why the op began (or, for return_*, returned) when it did and not earlier, `*_cause` the op that
// it waited for. `storage` is what an alloc or free is about; `from` and `to` are tiers. Same run, same bytes.
void export_csv(const Run& run, std::ostream& out);

}  // namespace memwall
