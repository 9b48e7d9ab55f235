// A whole text in a file: read within a limit, written whole or not at all.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace memwall {

// Throws InputError: no such file, neither an ordinary one nor a pipe, more than `largest` bytes, unreadable.
std::string read_text_file(const std::filesystem::path& path, std::uint64_t largest);
// Replaces what is there. Throws UsageError; then nothing has changed.
void write_text_file(const std::filesystem::path& path, const std::string& text);

}  // namespace memwall
