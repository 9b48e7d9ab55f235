// Reads the beginning of a file, by which importers tell what it is.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "models/workload/import/importer.h"

namespace memwall {

// Throws InputError where the file cannot be opened or read, or its first bytes cannot be unpacked.
FileHead read_file_head(const std::filesystem::path& path);

// Names of the members of the JSON object at the beginning of a text, as far as the text goes.
struct FirstMembers {
  std::vector<std::string> names;  // escapes left as they are
  bool closed = false;             // the object ends within the text
};
FirstMembers first_members(std::string_view text);

// The beginning of a text for a message: what cannot be printed as \x1f.
std::string printable_prefix(std::string_view text);

}  // namespace memwall
