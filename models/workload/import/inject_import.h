// Turns what libmemwall_inject recorded of a CUDA program into a trace, by the rules for Kineto captures.
//
// Records become a KinetoCapture: calls of the runtime are the host's work, calls of the driver that the runtime made
// inside its own are part of it; NVTX ranges are annotated ranges (of PyTorch's emit_nvtx: operators), and those whose
// names say so stand for steps and phases; cudaMalloc and its kin are allocations. What a trace cannot hold (migrations
// of unified memory, pools, ...) is counted in its notes.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/workload/import/importer.h"
#include "models/workload/import/kineto_import.h"

namespace memwall {

struct InjectImportOptions {
  // NVTX ranges of this name, or that begin with it, are the steps. "": those that are called step, iteration, ...
  std::string step_range;
};

struct InjectCapture {
  KinetoCapture capture;
  std::vector<std::string> notes;  // what was recorded, what is missing, what was left out
};

struct InjectRecords;

// The records' capture, whoever wrote them. Throws InputError and UsageError as read_inject does.
InjectCapture convert_inject(InjectRecords records, const InjectImportOptions& options);

// Throws InputError naming file, byte, what was found and expected; UsageError where no range has the given name.
InjectCapture read_inject(const std::filesystem::path& path, const InjectImportOptions& options = {});

// import_kineto of the capture, with the notes before its own.
ImportedTrace import_inject(const InjectCapture& capture);

bool recognizes_inject(const FileHead& head);
ImportedStep import_inject(const std::filesystem::path& path, const ImportSettings& settings);

}  // namespace memwall
