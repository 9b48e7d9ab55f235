#include "models/workload/import/byte_source.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "sim/error.h"

namespace memwall {
namespace {
constexpr std::size_t kInputBytes = 256 << 10;
constexpr int kGzipWindow = 16 + MAX_WBITS;  // zlib.h: 16 more asks for a gzip wrapper
}  // namespace

ByteSource::ByteSource(const std::filesystem::path& path) : path_(path), input_(kInputBytes) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw InputError(path.string() + " is a directory; expected a file.");
  file_.reset(std::fopen(path.c_str(), "rb"));
  if (!file_) throw InputError(path.string() + " cannot be opened: " + std::strerror(errno) + ".");
  fill_input();
  if (input_size_ >= 2 && input_[0] == 0x1f && input_[1] == 0x8b) {
    stream_ = std::make_unique<z_stream_s>();
    if (inflateInit2(stream_.get(), kGzipWindow) != Z_OK) throw std::bad_alloc();
    member_open_ = true;
  }
}

ByteSource::~ByteSource() {
  if (stream_) inflateEnd(stream_.get());
}

void ByteSource::fail(const char* found) const {
  throw InputError(path_.string() + ", compressed byte " + std::to_string(input_base_ + input_used_) + ": found " +
                   found + "; expected a whole gzip stream.");
}

bool ByteSource::fill_input() {
  input_base_ += input_size_;
  input_used_ = 0;
  input_size_ = std::fread(input_.data(), 1, input_.size(), file_.get());
  if (input_size_ == 0 && std::ferror(file_.get()))
    throw InputError(path_.string() + ", byte " + std::to_string(input_base_) +
                     ": cannot be read: " + std::strerror(errno) + ".");
  return input_size_ > 0;
}

std::size_t ByteSource::read_plain(char* to, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    if (input_used_ == input_size_ && !fill_input()) break;
    const std::size_t n = std::min(size - done, input_size_ - input_used_);
    std::memcpy(to + done, input_.data() + input_used_, n);
    input_used_ += n;
    done += n;
  }
  return done;
}

std::size_t ByteSource::read_inflated(char* to, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    if (input_used_ == input_size_ && !fill_input()) {
      if (member_open_) fail("the end of the file in the middle of the data");
      break;
    }
    if (!member_open_) {  // gzip allows several members in a row; anything else behind one is padding
      if (input_[input_used_] != 0x1f) break;
      inflateReset(stream_.get());
      member_open_ = true;
    }
    stream_->next_in = input_.data() + input_used_;
    stream_->avail_in = static_cast<uInt>(input_size_ - input_used_);
    stream_->next_out = reinterpret_cast<Bytef*>(to + done);
    stream_->avail_out = static_cast<uInt>(std::min(size - done, std::size_t{1} << 30));
    const uInt room = stream_->avail_out;
    const int status = inflate(stream_.get(), Z_NO_FLUSH);
    input_used_ = input_size_ - stream_->avail_in;
    done += room - stream_->avail_out;
    if (status == Z_STREAM_END) {
      member_open_ = false;
    } else if (status == Z_MEM_ERROR) {
      throw std::bad_alloc();
    } else if (status != Z_OK && status != Z_BUF_ERROR) {
      fail(stream_->msg != nullptr ? stream_->msg : "damaged data");
    }
  }
  return done;
}

std::size_t ByteSource::read(char* to, std::size_t size) {
  return stream_ ? read_inflated(to, size) : read_plain(to, size);
}

}  // namespace memwall
