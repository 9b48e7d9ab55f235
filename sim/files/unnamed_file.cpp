#include "sim/files/unnamed_file.h"

#include <fcntl.h>
#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace memwall {

FileDescriptor unnamed_temporary_file() {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) return FileDescriptor();
#ifdef O_TMPFILE
  if (FileDescriptor file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600)); file) return file;
#endif
  std::string name = (folder / "memwall-pipe-XXXXXX").string();
  FileDescriptor file(::mkostemp(name.data(), O_CLOEXEC));
  if (file) ::unlink(name.c_str());
  return file;
}

}  // namespace memwall
