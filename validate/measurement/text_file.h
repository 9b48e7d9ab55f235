// A whole text in a file: read within a limit, written beside its name and renamed, so that no reader ever
// sees half of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace memwall {

// Throws InputError: no such file, not an ordinary one, more than `largest` bytes, unreadable.
std::string read_text_file(const std::filesystem::path& path, std::uint64_t largest);
// Replaces what is there. Throws UsageError; then nothing has changed.
void write_text_file(const std::filesystem::path& path, const std::string& text);

}  // namespace memwall
