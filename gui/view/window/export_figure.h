// Figures into files: from the screen, and headless for `memwall render`, which links no Qt.
//
// `memwall` draws a figure, starts `memwall-viewer --export` and hands the figure over on its standard
// input (traces/figure/figure_stream.h); the viewer paints it with the functions that the screen uses.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "traces/figure/figure.h"

namespace memwall::gui {

// As SVG, PNG or PDF, by the file's ending; written beside the target and renamed. `scale`: pixels per point, of PNG.
// Throws UsageError for another ending, for a scale that makes an image too large, and where the file cannot be
// written.
void export_figure(const Figure& figure, const std::filesystem::path& path, double scale = 2);

// The program when its first argument is --export: `arguments` are those after the program's name,
//   --export FILE.png [--scale N]
// and the figure is read from standard input. Returns the exit code: 0, 2 (arguments, or the file cannot be written)
// or 6 (what it read is no figure), after a sentence on stderr. Needs no screen: it makes an application of its own.
// REQUIRES: there is none yet.
int export_main(const std::vector<std::string>& arguments);

}  // namespace memwall::gui
