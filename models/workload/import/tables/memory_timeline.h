// Turns a raw memory timeline of PyTorch into a trace of allocations and frees.
//
// profile.export_memory_timeline("X.raw.json.gz") writes a list of [time in ns, action, bytes, category]
// (torch/profiler/_memory_profiler.py, export_memory_timeline_raw):
//   actions     1 PREEXISTING (its time is -1 or that of the first event), 2 CREATE, 3 INCREMENT_VERSION (two rows: the
//               bytes leave the category of the old version and enter that of the new), 4 DESTROY; bytes that leave
//               count below zero
//   categories  0 parameter, 1 optimizer state, 2 input, 3 temporary, 4 activation, 5 gradient, 6 autograd detail,
//               7 unknown
// There are no addresses: a row that takes bytes away means the youngest storage of that size in that category. Which
// one it was changes no sum. A storage has the kind of the last category that is not unknown; temporary is workspace,
// autograd detail activation. Nothing runs on the device, and the host's times stand between the events.
#pragma once

#include "models/workload/import/bytes/file_head.h"
#include "models/workload/import/timed/imported_step.h"

namespace memwall {

bool recognizes_memory_timeline(const FileHead& head);

// Throws InputError with file, row, found and expected.
ImportedStep import_memory_timeline(const std::filesystem::path& path, const ImportSettings& settings = {});

}  // namespace memwall
