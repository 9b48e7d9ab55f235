// A foreign format that memwall opens. Formats are told apart by content, never by a file's name.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "models/workload/import/timed/decision.h"
#include "models/workload/import/timed/rank_capture.h"
#include "sim/trace/trace.h"
#include "sim/units.h"

namespace memwall {

// The beginning of a file, as far as it tells what the file is.
struct FileHead {
  std::filesystem::path path;
  std::string raw;                   // its first bytes, up to 64 KiB, unpacked (gzip, archives)
  std::string text;                  // the same without byte order mark and leading blanks
  std::vector<std::string> members;  // JSON: names of members of the outermost object, as far as they were needed
};

// What the user said beside the file; empty = not said.
struct ImportSettings {
  std::filesystem::path execution_trace;  // ExecutionTrace of the same run
  std::string step_range;                 // name of the NVTX ranges around steps
};

struct ImportedStep {
  Trace trace;                               // sound; Trace::machine is "" where the GPU below says it
  std::vector<std::string> report;           // what the file holds; what was concluded stands in trace.notes
  std::vector<Decision> decisions;           // all that was concluded, for `import --explain`
  std::vector<std::filesystem::path> files;  // that were read
  std::string gpu;                           // as the file names the device; "" = unknown
  Bytes gpu_memory = 0;                      // 0 = unknown
  std::optional<RankCapture> rank;           // of a capture with times: what several are joined by (rank_join.h)
};

struct Importer {
  std::string name;        // "Kineto capture"
  std::string sentence;    // who writes such files, and what is usually behind their names' last dot
  std::string recognized;  // by what in the content
  std::string knows;       // what the trace then knows, and on what that depends
  bool takes_execution_trace = false, takes_step_range = false;
  // Never throws; decides by content alone.
  bool (*recognizes)(const FileHead& head) = nullptr;
  // Throws InputError naming file, place, found and expected.
  ImportedStep (*import)(const std::filesystem::path& path, const ImportSettings& settings) = nullptr;
};

// All of them, in the order in which they are asked.
const std::vector<Importer>& importers();

// The first that recognizes the file, or null. Where a JSON object's members in the head do not tell, the file is read
// on until one does, and head.members grows. Throws InputError where the file cannot be read as far as that.
const Importer* find_importer(FileHead& head);

// What a file that no importer takes is known to be ("this is ...; give ..."), or "".
std::string unsupported_file_hint(const FileHead& head);

}  // namespace memwall
