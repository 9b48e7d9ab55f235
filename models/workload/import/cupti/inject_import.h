// Turns what libmemwall_inject recorded of a CUDA program into a trace, by the rules for Kineto captures.
//
// Records become a TimedCapture: calls of the runtime are the host's work, calls of the driver that the runtime made
// inside its own are part of it; NVTX ranges are annotated ranges (of PyTorch's emit_nvtx: operators), and those whose
// names say so stand for steps and phases; cudaMalloc and its kin are allocations. What a trace cannot hold (migrations
// of unified memory, pools, ...) is counted in its notes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/workload/import/importer.h"
#include "models/workload/import/timed/timed_import.h"

namespace memwall {

struct CuptiImportOptions {
  // NVTX ranges of this name, or that begin with it, are the steps. "": those that are called step, iteration, ...
  std::string step_range;
};

struct CuptiCapture {
  TimedCapture capture;
  std::vector<std::string> notes;  // what was recorded, what is missing, what was left out
};

struct CuptiRecords;

// The records' capture, whoever wrote them. Throws InputError and UsageError as read_inject does.
CuptiCapture convert_cupti_records(CuptiRecords records, const CuptiImportOptions& options);

// Throws InputError naming file, byte, what was found and expected; UsageError where no range has the given name.
CuptiCapture read_inject(const std::filesystem::path& path, const CuptiImportOptions& options = {});

// import_timed_capture of the capture, with the notes before its own.
ImportedTrace import_inject(const CuptiCapture& capture);

bool recognizes_inject(const FileHead& head);
ImportedStep import_inject(const std::filesystem::path& path, const ImportSettings& settings);

}  // namespace memwall
