// Turns a TrioSim workload (trace.csv with tensor.csv beside it) into a trace: one kernel op per row.
//
// - Time: a row gives the span from the first start to the last end of its kernels, and the kernels' own sum, in whole
//   microseconds or fractions of them. The sum is the op's duration; the rest of the span, in which the device waited
//   for its host, is the host gap before it, and the host waits for each op. So the step takes the sum of all spans
//   on the machine where it was captured, and elsewhere only what the device does changes. What passed between
//   operators is not in the file and counts as nothing.
// - Storages: by the tracer's storage numbers, which come back once a storage is freed. An output whose storage no
//   input of its operator has is a new one; as large as its largest tensor. A tensor that no row makes, whose number
//   lies before those of the row that first takes it, was made inside the operator in whose range of numbers it lies
//   (statistics that a batch norm saves); a later number counts as made by the row that first takes it, except in the
//   forward pass and the optimizer, where it existed before.
// - Lives: from the op that makes a storage to the last that uses it, which is a lower bound; what existed before is
//   not freed.
// - Kinds: parameter (a weight, a bias, a running statistic, or counted up in forward), optimizer_state (older, first
//   taken by the optimizer), input (older, the rest), gradient (made in the backward pass, taken by the
//   optimizer), workspace (made by the optimizer), activation (the rest, gradients of activations too).
// - Costs: triosim_costs.h.
//
// Source of the format: sarchlab/triosim, tracer/dataprocess.py.
#pragma once

#include "models/workload/import/bytes/file_head.h"
#include "models/workload/import/timed/imported_step.h"

namespace memwall {

bool recognizes_triosim(const FileHead& head);

// Throws InputError with file, line, found and expected.
ImportedStep import_triosim(const std::filesystem::path& path, const ImportSettings& settings = {});

}  // namespace memwall
