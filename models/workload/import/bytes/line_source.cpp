#include "models/workload/import/bytes/line_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "sim/error.h"

namespace memwall {
namespace {
constexpr std::size_t kLineChunk = std::size_t{256} << 10;

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t\r") == std::string_view::npos; }
}  // namespace

LineSource::LineSource(const std::filesystem::path& path, std::size_t longest)
    : path_(path), bytes_(path), longest_(longest), buffer_(2 * kLineChunk + kPadding) {}

void LineSource::fail(const std::string& sentence) const {
  throw InputError(fmt::format("{}, line {}: {}", path_.string(), number_, sentence));
}

bool LineSource::next(std::string_view& line) {
  while (read_line(line)) {
    if (number_ == 1 && line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);  // a byte order mark
    if (!is_blank(line)) return true;
  }
  return false;
}

bool LineSource::read_line(std::string_view& line) {
  ++number_;
  std::size_t searched = 0;
  while (true) {
    const char* begin = buffer_.data() + begin_;
    const void* end = std::memchr(begin + searched, '\n', end_ - begin_ - searched);
    if (end != nullptr) {
      line = {begin, static_cast<std::size_t>(static_cast<const char*>(end) - begin)};
      begin_ += line.size() + 1;
      return true;
    }
    searched = end_ - begin_;
    if (searched > longest_) fail(fmt::format("the line is longer than {} MiB; expected a record.", longest_ >> 20));
    if (refill()) continue;
    line = {buffer_.data() + begin_, end_ - begin_};
    begin_ = end_;
    return !line.empty();
  }
}

bool LineSource::refill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (buffer_.size() - kPadding - end_ < kLineChunk) buffer_.resize(2 * buffer_.size());
  const std::size_t got = bytes_.read(buffer_.data() + end_, buffer_.size() - kPadding - end_);
  end_ += got;
  return got > 0;
}

}  // namespace memwall
