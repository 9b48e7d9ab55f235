// The file that memwall itself was loaded from.
#pragma once

#include <filesystem>

namespace memwall {

struct OwnFile {
  std::filesystem::path path;  // "" where the system does not tell
  bool is_program = true;      // else a library that another program loaded: the Python package's
};

OwnFile own_file();

}  // namespace memwall
