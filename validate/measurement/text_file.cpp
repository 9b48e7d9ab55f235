#include "validate/measurement/text_file.h"

#include "sim/files/file_writer.h"
#include "sim/files/input_file.h"

namespace memwall {
namespace fs = std::filesystem;

std::string read_text_file(const fs::path& path, std::uint64_t largest) {
  return content_of_file(path, largest, "a text");
}

void write_text_file(const fs::path& path, const std::string& text) {
  FileWriter file(path);
  file.append(text);
  file.commit();
}

}  // namespace memwall
