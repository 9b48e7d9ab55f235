// Turns a log of dynamic tensor rematerialization (DTR) into a trace.
//
// The DTR prototype (uwsampl/dtr-prototype, a PyTorch of 2020 with checkpointed tensors) writes one JSON object per
// line: what each operator took, made and how long it took, and every handle that came and went. Its simulator, simrd,
// reads these logs; the rules here are simrd's, except where a line says otherwise:
//
// | instruction | what becomes of it |
// |---|---|
// | CONSTANT, then MEMORY | before the first operator of the trace a storage that existed before: a parameter, an input
//   or a buffer, which the log does not tell apart; its kind is parameter. After an operator a storage that lives from
//   there, and is no part of the state at the start: a training loop names its next batch so; its kind is input |
// | CALL, then MEMORY and ALIAS per result | an op of TIME nanoseconds that reads its ARGS; a result of ALIAS -1 is a new
//   storage that it writes, any other is a view of that argument. A call of views alone is work of the host |
// | MUTATE | an op that reads its ARGS and writes a new version of those listed in MUTATE (simrd makes a new storage: DTR
//   copies what it mutates, PyTorch without it does not) |
// | COPY | one more handle on SRC's storage |
// | COPY_FROM | the handle DST lets go of its storage and holds SRC's |
// | RELEASE | the handle is gone; with the last handle the storage is freed |
// | ANNOTATE START | a step begins; what stands before the first is only looked at for what is alive then |
// | ANNOTATE BACKWARD | the backward pass begins; so it does with an operator that has "backward" in its name |
//
// Times are those of a device that was waited for after each operator, so the host waits for each op. What the backward
// pass makes and nobody releases is a gradient; every other result an activation. Instructions of later loggers are
// skipped and counted. The format was taken from the logger (aten/src/ATen/CheckpointTensorImpl.cpp) and from simrd; no
// log of a real run was at hand when this was written.
#pragma once

#include "models/workload/import/bytes/file_head.h"
#include "models/workload/import/timed/imported_step.h"

namespace memwall {

bool recognizes_dtr(const FileHead& head);

// Throws InputError with file, line, found and expected.
ImportedStep import_dtr(const std::filesystem::path& path, const ImportSettings& settings = {});

}  // namespace memwall
