// memwall-viewer, which holds what needs Qt: found, started, and given figures to paint. memwall itself
// links no Qt, so that a server without it can run everything else.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "traces/figure/figure.h"

namespace memwall {

// Beside this program, in its build tree, or on PATH. Throws UsageError that says `purpose` ("pictures as .png") needs
// it and what to install.
std::filesystem::path find_viewer(const std::string& purpose);

// Has the viewer write `figure` to `output` (.png or .pdf; `scale`: pixels per point of the former). It says itself
// what went wrong; returns its exit code. Throws UsageError where it cannot be started, std::runtime_error where it
// crashed.
int paint_with_viewer(const std::filesystem::path& viewer, const Figure& figure, const std::string& output,
                      double scale);

// Becomes the viewer. Returns only by throwing UsageError.
[[noreturn]] void become_viewer(const std::filesystem::path& viewer, const std::vector<std::string>& arguments);

}  // namespace memwall
