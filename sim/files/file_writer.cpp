#include "sim/files/file_writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "sim/error.h"
#include "sim/files/partial_names.h"
#include "sim/files/unnamed_file.h"

namespace memwall {
namespace {

namespace fs = std::filesystem;

constexpr ::mode_t kReadableAndWritable = 0666;  // less what the umask takes

std::string path_of_descriptor(int number) { return "/proc/self/fd/" + std::to_string(number); }

}  // namespace

FileWriter::FileWriter(fs::path path, PartialFile partial) : path_(std::move(path)) {
  if (path_ == "-") {
    open_for_output();
    return;
  }
  std::error_code unknown;
  // A link stays one: what it leads to is replaced.
  if (fs::is_symlink(fs::symlink_status(path_, unknown)))
    if (const fs::path target = fs::weakly_canonical(path_, unknown); !unknown) path_ = target;
  // Renaming would put an ordinary file where a device or a folder was.
  const fs::file_status status = fs::status(path_, unknown);
  if (fs::is_directory(status)) refuse("this is a folder");
  if (fs::exists(status) && !fs::is_regular_file(status)) refuse("this is no ordinary file");
  if (path_.filename().empty()) refuse("a name is missing");
  folder_ = path_.parent_path().empty() ? fs::path(".") : path_.parent_path();
  remove_stale_partial_files(path_);
  if (partial == PartialFile::named || !open_unnamed()) open_named();
}

void FileWriter::refuse(const std::string& reason) const {
  throw UsageError(path_.string() + ": the file cannot be written (" + reason + ").");
}

void FileWriter::refuse(int error) const { refuse(std::strerror(error)); }

void FileWriter::open_for_output() {
  path_ = "standard output";
  prints_ = true;
  if (::isatty(STDOUT_FILENO) == 1) refuse("it is a terminal, which shows no such bytes; give a name, or redirect it");
  file_ = unnamed_temporary_file();
  if (!file_) refuse(errno);
}

void FileWriter::print_out() {
  std::vector<char> piece(std::size_t{1} << 20);
  std::uint64_t at = 0;
  while (const std::size_t size = read_at(at, piece.data(), piece.size())) {
    for (std::size_t done = 0; done < size;) {
      const ::ssize_t written = ::write(STDOUT_FILENO, piece.data() + done, size - done);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) throw std::runtime_error("standard output cannot be written to.");
      done += static_cast<std::size_t>(written);
    }
    at += size;
  }
}

bool FileWriter::open_unnamed() {
#ifdef O_TMPFILE
  file_ = FileDescriptor(::open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, kReadableAndWritable));
  // Without /proc it could never get a name.
  if (file_ && ::access(path_of_descriptor(file_.number()).c_str(), F_OK) == 0) return true;
  file_ = FileDescriptor();
#endif
  return false;
}

void FileWriter::open_named() {
  for (int number = 0;; ++number) {
    const fs::path name = partial_name(path_, number);
    file_ = FileDescriptor(::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, kReadableAndWritable));
    if (!file_ && errno == EEXIST && number < kMostPartialNames) continue;  // another thread of this program
    if (!file_) refuse(errno);
    partial_ = std::make_unique<TemporaryName>(name);
    ::flock(file_.number(), LOCK_EX | LOCK_NB);  // says to other computers that share the folder that we live
    return;
  }
}

void FileWriter::append(std::string_view bytes) {
  write_at(appended_, bytes);
  appended_ += bytes.size();
}

void FileWriter::write_at(std::uint64_t offset, std::string_view bytes) {
  while (!bytes.empty()) {
    const ::ssize_t written = ::pwrite(file_.number(), bytes.data(), bytes.size(), static_cast<::off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) refuse(errno);
    if (written == 0) refuse("the disk may be full");
    bytes.remove_prefix(static_cast<std::size_t>(written));
    offset += static_cast<std::uint64_t>(written);
  }
}

std::size_t FileWriter::read_at(std::uint64_t offset, char* to, std::size_t size) {
  std::size_t done = 0;
  while (done < size) {
    const ::ssize_t got = ::pread(file_.number(), to + done, size - done, static_cast<::off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse(errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

void FileWriter::set_size(std::uint64_t bytes) {
  while (::ftruncate(file_.number(), static_cast<::off_t>(bytes)) != 0)
    if (errno != EINTR) refuse(errno);
}

std::uint64_t FileWriter::size() const {
  struct ::stat state {};
  if (::fstat(file_.number(), &state) != 0) refuse(errno);
  return static_cast<std::uint64_t>(state.st_size);
}

bool FileWriter::link_unnamed(const fs::path& name) const {
  return ::linkat(AT_FDCWD, path_of_descriptor(file_.number()).c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

// A name that outlives a power cut must not lead to an empty file. Some file systems cannot synchronize.
void FileWriter::write_to_disk() {
  if (::fsync(file_.number()) != 0 && errno != EINVAL && errno != EROFS && errno != ENOTSUP) refuse(errno);
}

// File systems that lend a file without a name and then refuse to give it one.
void FileWriter::copy_to_named() {
  FileDescriptor unnamed = std::move(file_);
  open_named();
  std::vector<char> piece(std::size_t{1} << 20);
  for (std::uint64_t at = 0;;) {
    const ::ssize_t got = ::pread(unnamed.number(), piece.data(), piece.size(), static_cast<::off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) refuse(errno);
    if (got == 0) return write_to_disk();
    write_at(at, {piece.data(), static_cast<std::size_t>(got)});
    at += static_cast<std::uint64_t>(got);
  }
}

// A name beside the target, which is then renamed: nothing can link over a file that is there.
void FileWriter::give_name() {
  for (int number = 0; number <= kMostPartialNames; ++number) {
    auto name = std::make_unique<TemporaryName>(partial_name(path_, number));
    if (link_unnamed(name->path())) {
      partial_ = std::move(name);
      return;
    }
    const int error = errno;
    name->release();  // another thread's, or nobody's
    if (error != EEXIST) break;
  }
  copy_to_named();
}

// Who may read and write the file stays as it was; its owner, as far as the system lets us.
void FileWriter::keep_mode() const {
  struct ::stat before {};
  if (::stat(path_.c_str(), &before) != 0) return;
  if (::fchown(file_.number(), before.st_uid, before.st_gid) != 0) errno = 0;  // not ours to give away
  if (::fchmod(file_.number(), before.st_mode & 07777) != 0) errno = 0;
}

void FileWriter::replace_target() {
  if (::rename(partial_->path().c_str(), path_.c_str()) != 0) refuse(errno);
  partial_->release();
}

void FileWriter::commit() {
  if (prints_) return print_out();
  keep_mode();
  write_to_disk();
  if (partial_ || !link_unnamed(path_)) {
    if (!partial_) give_name();  // for as short as can be: nobody removes it after SIGKILL but the next writer
    replace_target();
  }
  const FileDescriptor folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder) ::fsync(folder.number());  // the name, too; where that fails the content is there all the same
  file_ = FileDescriptor();
}

}  // namespace memwall
