// A run file that is verified as it is read: no byte of a piece is handed out before the piece's checksum has matched.
// Internal to traces/run.
//
// HDF5 reads through it: open_hdf5() gives a file that HDF5 cannot write to, whose every read goes through read().
// HDF5 knows only that a read failed; what was wrong is kept for whoever writes the sentence.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "traces/run/file/user_block.h"
#include "traces/run/file/hdf5_handle.h"

namespace memwall {

class ChecksummedFile {
 public:
  // Verifies the user block. Throws InputError.
  explicit ChecksummedFile(const std::filesystem::path& path);
  ~ChecksummedFile();
  ChecksummedFile(const ChecksummedFile&) = delete;
  ChecksummedFile& operator=(const ChecksummedFile&) = delete;

  const std::string& path() const { return path_; }
  std::uint64_t length() const { return user_block_.length; }

  // False if the range is not within the file, a piece of it is damaged, or the disk fails; take_failure() says which.
  // One thread at a time, as with HDF5.
  bool read(std::uint64_t offset, std::size_t size, void* out);
  // What the last failed read found: "the checksum of bytes ...". Nothing if none failed since it was asked.
  std::optional<std::string> take_failure();
  std::size_t resident_bytes() const;

  // Invalid if HDF5 refuses. This must outlive it. REQUIRES: not called before.
  Hdf5Handle open_hdf5();

 private:
  bool verify(std::size_t piece);
  bool read_plain(std::uint64_t offset, std::size_t size, char* out);
  bool fail(std::string what);

  std::string path_;
  UserBlock user_block_;
  int descriptor_ = -1;
  std::vector<bool> verified_;  // per piece
  std::vector<char> buffer_;    // a piece that is verified
  std::optional<std::string> failure_;
  Hdf5Handle driver_;  // HDF5 reads its own record of a driver once more after the last file of it is closed
};

}  // namespace memwall
