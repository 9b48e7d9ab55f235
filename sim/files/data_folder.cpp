#include "sim/files/data_folder.h"

#include <cstdlib>
#include <system_error>

#include "sim/files/own_file.h"

// From the folder of the programs; other installations have other places (GNUInstallDirs).
#ifndef MEMWALL_DATA_FROM_PROGRAMS
#define MEMWALL_DATA_FROM_PROGRAMS "../share/memwall"
#endif

namespace memwall {

namespace fs = std::filesystem;

fs::path data_folder(const char* variable, const char* name, const char* source) {
  const char* const named = variable == nullptr ? nullptr : std::getenv(variable);
  if (named != nullptr && *named != '\0') return named;
  const OwnFile own = own_file();
  std::error_code error;
  if (!own.path.empty()) {
    const char* const from_there = own.is_program ? MEMWALL_DATA_FROM_PROGRAMS : "share";
    fs::path installed = (own.path.parent_path() / from_there / name).lexically_normal();
    if (fs::is_directory(installed, error)) return installed;
  }
  return source;
}

}  // namespace memwall
