// Whatever a user calls "the step": a trace file, a capture, or something generated; told apart by content.
//
// Known here: memwall's own traces (.mwt), and steps that are generated: a known workload's name, a .textproto, a
// config.json. Every foreign format is one of importers().
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "models/workload/import/timed/decision.h"
#include "models/workload/import/importer.h"
#include "sim/trace/trace.h"
#include "study/watch.h"

namespace memwall {

// What the file is: "memwall trace", "generated step", or an importer's name; a name that is no file's may be a
// workload's. Throws InputError naming what was found, and what to do with a file that is known but not a step (a run
// file, G10's tensors).
std::string kind_of_workload(const std::filesystem::path& path);

// Is it a network's name or configuration, with settings behind it or not, of which a step is generated? Throws as above.
bool is_generated_step(const std::string& step);

struct Workload {
  std::string kind;
  Trace trace;                               // sound
  bool is_checked = false;                   // was that asked (sim/trace/trace_check.h) of the trace as it stands here?
  std::vector<std::string> report;           // what the file holds; what was concluded stands in trace.notes
  std::vector<Decision> decisions;           // all that was concluded; empty for traces and generated steps
  NoteKinds note_kinds;                      // of trace.notes: what is missing, what was assumed
  std::vector<std::filesystem::path> files;  // that were read
  OperatorCalls calls;                       // as of ImportedStep
};

// `watch` sees each file while it is read; null = nobody.
// `measured_on`: the machine of the durations where the file does not say (measured_machine.h); "" = not given.
// Throws InputError, and UsageError for settings that the file's format does not take.
Workload load_workload(const std::filesystem::path& path, const ImportSettings& settings = {},
                       const std::string& measured_on = "", Watch* watch = nullptr);

// Captures of several ranks of one job as one step, each with its ExecutionTrace where there is one: see
// models/workload/import/ranks/job_files.h for folders and the order, rank_join.h for what is refused. One file is as
// above. `settings` hold for all; with a rank, that one's capture alone is imported, of several files or of a file of
// several. REQUIRES: `paths` is not empty.
struct JobSettings {
  std::string step_range = {}, measured_on = {};  // "" = not given
  std::optional<std::uint32_t> rank = {};
};
Workload load_workload(const std::vector<std::filesystem::path>& paths,
                       const std::vector<std::filesystem::path>& execution_traces, const JobSettings& settings = {},
                       Watch* watch = nullptr);

// What to call them in a title: "rank0.json", "rank0.json and 3 more".
std::string title_of(const std::vector<std::filesystem::path>& paths);

// "crc32:0a1b2c3d" of the file's bytes. Throws InputError.
std::string hash_of_file(const std::filesystem::path& path);

}  // namespace memwall
