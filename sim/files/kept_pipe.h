// What came through a pipe, kept so that it can be read again. Internal to files.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace memwall {

// A path that opens the content of the pipe `path` from its beginning, for the life of the program; "" where that
// cannot be had, and `why_not` then says what was found ("nobody writes to this pipe ..."). Asked again for the same
// pipe it gives the same content. Waits for the end of what is written, at most `largest` bytes.
std::filesystem::path kept_pipe(const std::filesystem::path& path, std::uint64_t largest, std::string& why_not);

}  // namespace memwall
