// How files are called that are not yet whole, and which of them nobody writes any more. Internal to files.
#pragma once

#include <filesystem>

namespace memwall {

inline constexpr int kMostPartialNames = 1000;  // of one target in one process

// "TARGET.partial-PID", from the second on "TARGET.partial-PID-NUMBER"; of a long name only as much as leaves room.
std::filesystem::path partial_name(const std::filesystem::path& target, int number);

// Removes partial files of `target` whose process has ended. Never throws.
void remove_stale_partial_files(const std::filesystem::path& target) noexcept;

}  // namespace memwall
