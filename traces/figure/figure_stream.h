// A figure as bytes, from one program of memwall to another: `memwall render` draws, memwall-viewer
// paints what needs Qt. Not a file format to keep: both programs are of one version.
#pragma once

#include <string>
#include <string_view>

#include "traces/figure/figure.h"

namespace memwall {

// Numbers are exact: the figure read is the figure written.
std::string figure_bytes(const Figure& figure);
// Throws InputError for bytes that figure_bytes did not write: another version's, cut, damaged.
Figure figure_from_bytes(std::string_view bytes);

}  // namespace memwall
