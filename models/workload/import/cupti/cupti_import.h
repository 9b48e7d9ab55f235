// Turns records of CUPTI and NVTX, whoever wrote them, into a trace.
//
// Records become a TimedCapture: calls of the runtime are the host's work, calls of the driver that the runtime made
// inside its own are part of it; NVTX ranges are annotated ranges (of PyTorch's emit_nvtx: operators), and those whose
// names say so stand for steps and phases; cudaMalloc and its kin are allocations. What a trace cannot hold (migrations
// of unified memory, pools, ...) is counted in its notes.
#pragma once

#include <string>
#include <vector>

#include "models/workload/import/timed/imported_step.h"
#include "models/workload/import/timed/timed_import.h"

namespace memwall {

struct CuptiCapture {
  TimedCapture capture;
  std::vector<std::string> notes;  // what was recorded, what is missing, what was left out
  NoteKinds note_kinds;
};

struct CuptiRecords;

// NVTX ranges named `step_range`, or whose names begin with it, are the steps; "": those that are called step,
// iteration, ... Throws InputError naming the file, UsageError where no range has the given name.
CuptiCapture convert_cupti_records(CuptiRecords records, const std::string& step_range);

// import_timed_capture of the capture, with the notes before its own. The trace's name is the file's without its ending.
ImportedTrace import_cupti_capture(const CuptiCapture& capture);

// `imported` of the capture as a step. `decisions`: what was concluded so far; the capture's notes are added.
ImportedStep cupti_step(const CuptiCapture& capture, ImportedTrace imported, std::vector<Decision> decisions);

}  // namespace memwall
