#include "models/workload/import/file_text.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

#include "sim/error.h"

namespace memwall {
namespace {

struct CloseGz {
  void operator()(gzFile_s* file) const { gzclose_r(file); }
};
using GzFile = std::unique_ptr<gzFile_s, CloseGz>;

GzFile open(const std::filesystem::path& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    throw InputError(fmt::format("{} is a folder; expected a file.", path.string()));
  errno = 0;
  GzFile file(gzopen(path.c_str(), "rb"));
  if (!file)
    throw InputError(fmt::format("{} cannot be opened: {}.", path.string(),
                                 errno != 0 ? std::strerror(errno) : "not enough memory"));
  gzbuffer(file.get(), 1U << 17);
  return file;
}

// zlib reports a cut file (Z_BUF_ERROR) only here, not as a failed read.
void require_complete(gzFile_s* file, const std::filesystem::path& path, std::size_t read) {
  int code = Z_OK;
  const char* message = gzerror(file, &code);
  if (code == Z_OK || code == Z_STREAM_END) return;
  if (code == Z_BUF_ERROR)
    throw InputError(
        fmt::format("{} is a truncated gzip file: it ends after {} bytes of text, in the middle of the "
                    "compressed data.",
                    path.string(), read));
  throw InputError(fmt::format("{} is damaged after {} bytes of text: {}.", path.string(), read, message));
}

}  // namespace

std::string read_file_text(const std::filesystem::path& path, std::size_t limit) {
  const GzFile file = open(path);
  std::string text;
  constexpr std::size_t kChunk = std::size_t{1} << 18;
  for (;;) {
    const std::size_t before = text.size();
    text.resize(before + kChunk);
    const int got = gzread(file.get(), text.data() + before, kChunk);
    text.resize(before + static_cast<std::size_t>(got > 0 ? got : 0));
    if (got <= 0) break;
    if (text.size() > limit)
      throw InputError(
          fmt::format("{} holds more than {} bytes of text; files of this format are read at once and "
                      "may not be larger.",
                      path.string(), limit));
  }
  require_complete(file.get(), path, text.size());
  return text;
}

}  // namespace memwall
