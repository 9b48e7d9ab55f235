#include "cli/output_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <stdexcept>

#include "cli/terminal.h"
#include "sim/error.h"
#include "sim/files/output_stream.h"

namespace memwall {
namespace fs = std::filesystem;

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

void print_beside(const std::string& path, const std::string& report) {
  if (path == "-")
    print_error("{}", report);
  else
    print(report);
}

void write_output(const std::string& path, const std::function<void(std::ostream&)>& write) {
  if (path.empty() || path == "-") {
    write(std::cout);
    if (!std::cout.flush()) throw std::runtime_error("standard output cannot be written to.");
    return;
  }
  FileWriter file(path);
  FileWriterStream stream(file);
  write(stream);
  stream.flush();
  file.commit();
}

}  // namespace memwall
