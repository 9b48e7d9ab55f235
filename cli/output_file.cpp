#include "cli/output_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "sim/error.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const fs::path& temporary, const std::string& path, const std::string& reason) {
  std::error_code ignored;
  fs::remove(temporary, ignored);
  throw UsageError(fmt::format("{}: the file cannot be written ({}).", path, reason));
}

}  // namespace

void require_harmless(const std::string& path, const std::vector<fs::path>& inputs) {
  if (path.empty() || path == "-") return;
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return;
  if (!fs::is_regular_file(status))
    throw UsageError(fmt::format("{}: this is {}; expected the name of a file to write.", path,
                                 fs::is_directory(status) ? "a folder" : "no ordinary file"));
  for (const fs::path& input : inputs)
    if (fs::equivalent(path, input, error))
      throw UsageError(fmt::format("{}: the output would replace what is read; expected another name.", path));
}

void write_output(const std::string& path, const std::function<void(std::ostream&)>& write) {
  if (path.empty() || path == "-") {
    write(std::cout);
    if (!std::cout.flush()) throw std::runtime_error("standard output cannot be written to.");
    return;
  }
  // With the process's number, so that no other file, nor another run's, is in the way.
  const fs::path temporary = fmt::format("{}.partial-{}", path, ::getpid());
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  if (!file) refuse(temporary, path, std::strerror(errno));
  try {
    write(file);
  } catch (...) {
    std::error_code ignored;
    file.close();
    fs::remove(temporary, ignored);
    throw;
  }
  file.close();
  if (!file) refuse(temporary, path, "the disk may be full");
  std::error_code error;
  fs::rename(temporary, path, error);
  if (error) refuse(temporary, path, error.message());
}

}  // namespace memwall
