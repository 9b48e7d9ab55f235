// A foreign format that memwall opens. Formats are told apart by content, never by a file's name.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/workload/import/bytes/file_head.h"
#include "models/workload/import/timed/imported_step.h"

namespace memwall {

struct Importer {
  std::string name;        // "Kineto capture"
  std::string sentence;    // who writes such files, and what is usually behind their names' last dot
  std::string recognized;  // by what in the content
  std::string knows;       // what the trace then knows, and on what that depends
  bool takes_execution_trace = false, takes_step_range = false;
  bool takes_rank = false;  // its files may hold several ranks
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
