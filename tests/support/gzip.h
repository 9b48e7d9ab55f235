// Packs a text as gzip does. For tests of readers.
#pragma once

#include <string>

namespace memwall {

std::string gzipped(const std::string& text);

}  // namespace memwall
