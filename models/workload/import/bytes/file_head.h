// The beginning of a file, by which importers tell what it is.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace memwall {

// As far as it tells what the file is.
struct FileHead {
  std::filesystem::path path;
  std::string raw;                   // its first bytes, up to 64 KiB, unpacked (gzip, archives)
  std::string text;                  // the same without byte order mark and leading blanks
  std::vector<std::string> members;  // JSON: names of members of the outermost object, as far as they were needed
};

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
