// A step before it runs, as tables: what a pager may know ahead.
#pragma once

#include "sim/trace/trace.h"
#include "study/python/binding/column_table.h"

namespace memwall {

// op, kind, name, operator, module, phase, duration_s, bytes, flops.
ColumnTable step_op_table(const Trace& trace);
// storage, bytes, kind, label, preexisting.
ColumnTable step_storage_table(const Trace& trace);
// op, storage, writes: in the order of the ops.
ColumnTable step_use_table(const Trace& trace);

}  // namespace memwall
