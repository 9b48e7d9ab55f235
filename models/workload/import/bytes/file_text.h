// The whole text of a file, unpacked as ByteSource does.
//
// For formats that are small next to a Kineto capture (ExecutionTrace, CSV) and are
// therefore read at once; what is streamed has a reader of its own.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace memwall {

// simdjson indexes a document with 32-bit offsets; nothing that is read at once may be larger.
inline constexpr std::size_t kLargestText = std::size_t{1} << 32;

// Throws InputError when the file cannot be opened or read, when compressed data is
// truncated or damaged, and when the text is larger than `limit`.
std::string read_file_text(const std::filesystem::path& path, std::size_t limit = kLargestText);

}  // namespace memwall
