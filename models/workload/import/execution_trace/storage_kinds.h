// What each storage of a joined trace is for, and what people call it.
//
// From its uses, the phases of the ops that use it, and the names of operator arguments:
//
// | kind | storages |
// |---|---|
// | gradient | written in the backward pass and read by the optimizer; handed to AccumulateGrad and left alive; older
// than the window and dropped by Optimizer.zero_grad | | parameter | older, and used as `weight` or `bias` (or a
// running statistic) of an operator, or read by the model and written by the optimizer | | optimizer_state | older, and
// used by the optimizer alone; or made by the optimizer and left alive | | input | older and only read by the model; or
// filled by a copy from the host | | communication_buffer | made in the window, used by a collective, and none of the
// above | | activation | made by an operator of the forward or backward pass and none of the above: gradients of
// activations too | | workspace | allocated by an operator that does not return it; temporaries of the optimizer | |
// unknown | older than the window and used by nobody |
#pragma once

#include "models/workload/import/execution_trace/storage_join.h"

namespace memwall {

// Sets Storage::kind, and Storage::label where it is empty: a parameter is called by its module and
// argument ("VGG_0.Sequential_0.Conv2d_3.weight"), or by its operator and argument where modules are
// not known; its gradient and optimizer states are named after it where an operator on lists shows
// them side by side; the rest by the operator that made it. REQUIRES: the trace has its uses.
void classify_storages(ImportedTrace& imported, const TimedCapture& capture, const ExecutionTrace& execution,
                       const OperatorMatch& match, const StorageJoin& storages);

}  // namespace memwall
