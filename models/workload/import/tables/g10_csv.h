// G10's workloads: one training iteration as a list of measured kernels.
//
// The G10 artifact (platformxlab/G10, MICRO 2023) writes per workload a table of kernels
// (number, name, measured cycles at 1.2 GHz, tensors read, tensors written) and, beside it,
// a table of tensors (size, and the kernels between which each lives). Kernel times were
// measured on an A100-40GB.
//
// What becomes what:
// - a kernel: a kernel op on the one stream, cycles / 1.2 GHz long; the host costs nothing,
//   so kernels follow each other without gaps, as G10's own simulator has them;
// - a tensor: a storage. A global weight exists before the first kernel; any other is
//   allocated just before its birth kernel and freed just before its death kernel (which is
//   exclusive), and with death -1 just after its birth kernel (a cuDNN workspace);
// - a tensor that its birth kernel only reads (a mini-batch, a dropout mask, a constant) has
//   no writer in G10's list: that kernel counts as its writer, and a note gives their number;
// - phases from the names (X_Forward, X_Backward, X_MultiGredient, X_Apply_Grad). G10 applies
//   gradients as soon as they exist, so optimizer kernels stand among backward kernels;
// - kinds: parameter (global), gradient (read by an Apply_Grad kernel), workspace (death -1),
//   input (never written), activation (the rest, gradients of activations included);
// - one step from a mark to a mark. A synchronize stands before the second: otherwise a host
//   that costs nothing would reach the boundary at once.
//
// The trace knows timing, allocations and dataflow; its machine is "g10-a100-40gb".
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "models/workload/import/bytes/file_head.h"
#include "models/workload/import/timed/imported_step.h"
#include "sim/trace/trace.h"

namespace memwall {

// Imports NAME.kernels.csv with NAME.tensors.csv from the same folder. The trace is called
// NAME; a batch size after its last '-' becomes samples_per_step.
// Throws InputError (file, line, found, expected) if either file is missing or damaged, if a
// kernel names a tensor that is not listed or does not live then, or reads one nobody made.
Trace import_g10(const std::filesystem::path& kernels_csv);

bool recognizes_g10(const FileHead& head);
ImportedStep import_g10(const std::filesystem::path& kernels_csv, const ImportSettings& settings);

// The same from text in memory; the file names are for messages and the trace's name only.
Trace read_g10(std::string_view kernels, std::string_view tensors, const std::string& kernels_file,
               const std::string& tensors_file);

// NAME.tensors.csv beside NAME.kernels.csv. Throws InputError if the name is another or the file is missing.
std::filesystem::path tensors_beside(const std::filesystem::path& kernels_csv);

}  // namespace memwall
