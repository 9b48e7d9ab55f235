#include "validate/measurement/text_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "sim/error.h"

namespace memwall {
namespace fs = std::filesystem;

std::string read_text_file(const fs::path& path, std::uint64_t largest) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw InputError(path.string() + ": there is no such file.");
  if (!fs::is_regular_file(status)) throw InputError(path.string() + ": this is no ordinary file.");
  const std::uintmax_t size = fs::file_size(path, error);
  if (error) throw InputError(path.string() + ": the file cannot be read (" + error.message() + ").");
  if (size > largest)
    throw InputError(path.string() + ": found " + std::to_string(size) + " bytes; expected at most " +
                     std::to_string(largest) + ".");
  std::string text(size, '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file.read(text.data(), static_cast<std::streamsize>(size)))
    throw InputError(path.string() + ": the file cannot be read (" + std::strerror(errno) + ").");
  return text;
}

void write_text_file(const fs::path& path, const std::string& text) {
  fs::path partial = path;
  partial += ".partial-" + std::to_string(::getpid());
  const auto refuse = [&](const std::string& reason) {
    std::error_code ignored;
    fs::remove(partial, ignored);
    throw UsageError(path.string() + ": the file cannot be written (" + reason + ").");
  };
  // Renaming would put an ordinary file where a device or a folder was.
  std::error_code unknown;
  if (fs::exists(path, unknown) && !fs::is_regular_file(path, unknown)) refuse("this is no ordinary file");
  std::ofstream file(partial, std::ios::binary | std::ios::trunc);
  if (!file) refuse(std::strerror(errno));
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) refuse("the disk may be full");
  std::error_code error;
  fs::rename(partial, path, error);
  if (error) refuse(error.message());
}

}  // namespace memwall
