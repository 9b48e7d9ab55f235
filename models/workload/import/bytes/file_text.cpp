#include "models/workload/import/bytes/file_text.h"

#include <fmt/format.h>

#include "models/workload/import/bytes/byte_source.h"
#include "sim/error.h"

namespace memwall {

std::string read_file_text(const std::filesystem::path& path, std::size_t limit) {
  ByteSource bytes(path);
  std::string text;
  constexpr std::size_t kChunk = std::size_t{1} << 18;
  for (;;) {
    const std::size_t before = text.size();
    text.resize(before + kChunk);
    const std::size_t got = bytes.read(text.data() + before, kChunk);
    text.resize(before + got);
    if (got == 0) return text;
    if (text.size() > limit)
      throw InputError(
          fmt::format("{} holds more than {} bytes of text; files of this format are read at once and "
                      "may not be larger.",
                      path.string(), limit));
  }
}

}  // namespace memwall
