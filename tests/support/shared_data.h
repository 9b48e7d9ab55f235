// The folder of real captures that some tests read, where there is one.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <system_error>

namespace memwall {

// <shared>/data, where <shared> is the environment variable MEMWALL_SHARED or, without it,
// the folder `shared` beside the source folder. Nothing if it does not exist: skip the test then.
inline std::optional<std::filesystem::path> shared_data() {
  const char* named = std::getenv("MEMWALL_SHARED");
  const std::filesystem::path shared =
      named != nullptr && *named != '\0' ? named : std::filesystem::path(MEMWALL_SOURCE) / ".." / "shared";
  const std::filesystem::path data = shared / "data";
  std::error_code error;
  return std::filesystem::is_directory(data, error) ? std::optional(data) : std::nullopt;
}

}  // namespace memwall
