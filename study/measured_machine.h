// On which machine a step was measured: as its file says, or the user where the file does not (--measured-on).
//
// A TrioSim table, a Chakra graph, a DTR log or an old capture of Kineto holds durations and no GPU. They mean nothing
// on another machine until it is known whose they are.
#pragma once

#include <string>

#include "models/workload/import/importer.h"
#include "sim/trace/trace.h"

namespace memwall {

// Sets Trace::machine and notes why. `given` is a machine's name or file, "" = nothing was said. A machine whose GPU
// is another than the file's is refused; of machines with that GPU any may be given.
// Throws UsageError: unknown machine (with the nearest name), a step of which nothing was measured, another GPU.

// What to do where there is no machine file of the GPU: the nearest is named. `memory`: 0 = not known.
std::string unknown_gpu_sentence(const std::string& gpu, Bytes memory);

// Of a capture, whose GPU is `step.gpu`, or whose machine the importer knows.
void name_machine(const ImportedStep& step, Trace& trace, const std::string& given);

// Of a trace file or a generated step, which names its machine itself.
void name_machine(Trace& trace, const std::string& given);

// Throws as above where there is no such machine: to be asked before a long import. "" is none given, and right.
void require_machine(const std::string& given);

}  // namespace memwall
