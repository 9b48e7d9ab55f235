// The bytes of one file inside an archive (tar, zip), or of what is compressed by something newer than gzip.
//
// Nothing is ever written to disk, and links are never followed: only regular files are members. What profilers and
// their users leave beside them (folders, "._NAME" of macOS) is passed over.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct archive;

namespace memwall {

// A path may go on inside an archive: "traces.tgz:rank0/trace.json".
struct ArchivePath {
  std::filesystem::path file;  // on disk
  std::string member;          // "" = the only one, or the file is no archive
};
// The longest beginning of the path that is a file, up to a ':', is the archive; a path that exists is itself.
ArchivePath split_archive_path(const std::filesystem::path& path);

// By its first bytes, unpacked from gzip if it is gzip: a tar or zip archive, or compressed by zstd, xz or bzip2?
bool is_archive(std::string_view head);
inline constexpr std::size_t kArchiveHead = 512;  // bytes that tell it

// What a bomb is: more than this many bytes, from less than a two-hundredth. Captures reach a thirtieth.
inline constexpr std::uint64_t kMostUnpacked = std::uint64_t{64} << 20, kMostRatio = 200;

class ArchiveSource {
 public:
  // Throws InputError: no such member (with the nearest names), several and none chosen (with a list of them), none.
  explicit ArchiveSource(const ArchivePath& place);
  ~ArchiveSource();

  // Up to `size` more bytes of the member; fewer only at its end. Throws InputError where the archive is damaged.
  std::size_t read(char* to, std::size_t size);

  // The regular files of a tar or zip archive, in its order; none where the file is no archive, or one of more than
  // `most`. Throws InputError where it is damaged, or unpacks to more than 64 MiB and 200 times its size.
  static std::vector<std::string> members(const std::filesystem::path& file, std::size_t most);

  // So far: bytes read of the file, to tell a bomb by.
  std::uint64_t compressed() const;

 private:
  struct Close {
    void operator()(archive* a) const;
  };
  struct Unopened {};
  ArchiveSource(const std::filesystem::path& file, Unopened) : place_{file, ""} {}
  using Handle = std::unique_ptr<archive, Close>;
  Handle open() const;
  bool next_member(archive* a, std::string& name) const;       // the next regular file; false after the last
  void choose();                                               // sets place_.member where it is "" and there is one
  bool skip_block(archive* a, std::uint64_t& unpacked) const;  // false at the member's end
  void require_alone();  // behind the member that was chosen because it was the first
  [[noreturn]] void fail(archive* a) const;
  [[noreturn]] void fail_choice(const std::vector<std::string>& names, std::uint64_t count) const;

  ArchivePath place_;
  Handle archive_;
  bool alone_ = true;  // no other regular file stands in the archive, or the user chose this one
  bool ended_ = false;
};

}  // namespace memwall
