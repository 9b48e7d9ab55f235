#include "sim/files/data_folder.h"

#include <cstdlib>
#include <system_error>

// From the folder of the programs; other installations have other places (GNUInstallDirs).
#ifndef MEMWALL_DATA_FROM_PROGRAMS
#define MEMWALL_DATA_FROM_PROGRAMS "../share/memwall"
#endif

namespace memwall {

namespace fs = std::filesystem;

fs::path data_folder(const char* variable, const char* name, const char* source) {
  const char* const named = variable == nullptr ? nullptr : std::getenv(variable);
  if (named != nullptr && *named != '\0') return named;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  if (!error) {
    fs::path installed = (program.parent_path() / MEMWALL_DATA_FROM_PROGRAMS / name).lexically_normal();
    if (fs::is_directory(installed, error)) return installed;
  }
  return source;
}

}  // namespace memwall
