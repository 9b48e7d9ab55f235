#include "models/workload/import/bytes/byte_source.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "sim/files/input_file.h"
#include "models/workload/import/bytes/archive_source.h"
#include "sim/error.h"

namespace memwall {
namespace {
constexpr std::size_t kInputBytes = 256 << 10;
constexpr int kGzipWindow = 16 + MAX_WBITS;  // zlib.h: 16 more asks for a gzip wrapper
}  // namespace

ByteSource::ByteSource(const std::filesystem::path& path) : path_(path), input_(kInputBytes) {
  const ArchivePath place = split_archive_path(path);
  file_.reset(std::fopen(readable_path(place.file).c_str(), "rb"));
  if (!file_) throw InputError(path.string() + " cannot be opened: " + std::strerror(errno) + ".");
  begin();
  const std::string_view head = stream_ ? std::string_view(first_.data(), first_.size())
                                        : std::string_view(reinterpret_cast<const char*>(input_.data()), input_size_);
  if (is_archive(head)) {
    archive_ = std::make_unique<ArchiveSource>(place);
    file_.reset();
    begin();  // what is in it may be gzip again
  } else if (!place.member.empty()) {
    throw InputError(path.string() + ": " + place.file.string() +
                     " is no archive; expected a tar or zip file before the ':'.");
  }
}

void ByteSource::begin() {
  input_base_ = input_size_ = 0;
  first_.clear();
  stream_.reset();
  fill_input();
  if (input_size_ < 2 || input_[0] != 0x1f || input_[1] != 0x8b) return;
  stream_.reset(new z_stream_s());
  if (inflateInit2(stream_.get(), kGzipWindow) != Z_OK) throw std::bad_alloc();
  member_open_ = true;
  first_.resize(kArchiveHead);
  first_.resize(read_inflated(first_.data(), first_.size()));
}

void ByteSource::EndInflate::operator()(z_stream_s* stream) const {
  inflateEnd(stream);
  delete stream;
}

ByteSource::~ByteSource() = default;

void ByteSource::fail(const char* found) const {
  throw InputError(path_.string() + ", compressed byte " + std::to_string(input_base_ + input_used_) + ": found " +
                   found + "; expected a whole gzip stream.");
}

void ByteSource::require_harmless(std::uint64_t compressed) const {
  if (unpacked_ <= kMostUnpacked || unpacked_ / kMostRatio <= compressed) return;
  throw InputError(path_.string() + ": " + std::to_string(compressed) + " bytes unpack to more than " +
                   std::to_string(unpacked_ >> 20) + " MiB, over " + std::to_string(kMostRatio) +
                   " times as much; expected a capture, which does not repeat itself like that.");
}

bool ByteSource::fill_input() {
  input_base_ += input_size_;
  input_used_ = 0;
  input_size_ = archive_ ? archive_->read(reinterpret_cast<char*>(input_.data()), input_.size())
                         : std::fread(input_.data(), 1, input_.size(), file_.get());
  if (!archive_ && input_size_ == 0 && std::ferror(file_.get()))
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
      if (member_open_) fail("a truncated gzip file, which ends in the middle of the data");
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
  std::size_t got = 0;
  if (stream_) {
    got = std::min(size, first_.size() - first_used_);
    std::copy_n(first_.data() + first_used_, got, to);
    first_used_ += got;
    got += read_inflated(to + got, size - got);
  } else {
    got = read_plain(to, size);
  }
  unpacked_ += got;
  if (archive_ || stream_) require_harmless(archive_ ? archive_->compressed() : input_base_ + input_used_);
  return got;
}

}  // namespace memwall
