// A file that takes the place of another only when it is whole.
//
// Until commit() it has no name, where the file system can do that (O_TMPFILE): nothing is left of it however the
// program ends, SIGKILL and power cuts included. Elsewhere it is called NAME.partial-PID beside its target: removed by
// signals (files/temporary_name.h), and by the next FileWriter of the same target if its program was killed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "sim/files/file_descriptor.h"
#include "sim/files/temporary_name.h"

namespace memwall {

enum class PartialFile { unnamed_if_possible, named };

// The path "-" is standard output: kept in an unnamed file of the temporary folder, so that writers may go back in it,
// and printed whole by commit(). ("./-" is a file of this name.)
//
// Every function throws UsageError "PATH: the file cannot be written (REASON)." where it fails (no such folder, not
// allowed, a full disk); what was at PATH is then as it was. One thread at a time.
class FileWriter {
 public:
  // What stands at `path` must be an ordinary file, or nothing; a file's owner and mode are kept. A symbolic link
  // stays, and what it leads to is replaced.
  explicit FileWriter(std::filesystem::path path, PartialFile partial = PartialFile::unnamed_if_possible);
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  const std::filesystem::path& path() const { return path_; }

  // After all bytes that were appended.
  void append(std::string_view bytes);
  // From byte `offset` on; what lies between the end and there is zeros. Does not move the place of append().
  void write_at(std::uint64_t offset, std::string_view bytes);
  // Bytes that were read: fewer than `size` at the end of the file only.
  std::size_t read_at(std::uint64_t offset, char* to, std::size_t size);
  void set_size(std::uint64_t bytes);
  std::uint64_t size() const;

  // Writes to the disk and puts the file in its place. REQUIRES: called once, and nothing after it.
  void commit();

 private:
  [[noreturn]] void refuse(const std::string& reason) const;
  [[noreturn]] void refuse(int error) const;
  void open_for_output();
  void print_out();
  bool open_unnamed();
  void open_named();
  bool link_unnamed(const std::filesystem::path& name) const;
  void keep_mode() const;
  void write_to_disk();
  void copy_to_named();
  void give_name();
  void replace_target();

  std::filesystem::path path_, folder_;
  FileDescriptor file_;
  bool prints_ = false;                     // to standard output, when it is whole
  std::unique_ptr<TemporaryName> partial_;  // null while it has no name
  std::uint64_t appended_ = 0;
};

}  // namespace memwall
