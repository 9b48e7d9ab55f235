// HDF5 writes into a FileWriter, and never learns that a write failed. Internal to traces/run.
//
// HDF5 cannot get rid of a file that it cannot write: its handles stay open, and the function that it runs at the end
// of the program crashes over them. So a failure (a full disk) is kept here and told by require_written(); from then
// on nothing reaches the disk, what HDF5 writes of its own records is kept in memory for it to read again, and every
// handle closes.
#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <map>

#include "sim/files/file_writer.h"
#include "traces/run/file/hdf5_handle.h"

namespace memwall {

class Hdf5Output {
 public:
  // `file` must outlive it, and it must outlive all of HDF5's handles of the file.
  explicit Hdf5Output(FileWriter& file) : file_(file) {}
  Hdf5Output(const Hdf5Output&) = delete;
  Hdf5Output& operator=(const Hdf5Output&) = delete;

  // A new HDF5 file; invalid if HDF5 refuses. `creation`: its property list. REQUIRES: called once.
  Hdf5Handle create(hid_t creation);
  // Throws what the first write that failed threw (UsageError).
  void require_written() const;

  // For the driver alone. Nothing but memory for their pages may throw.
  void write(std::uint64_t offset, const char* bytes, std::size_t size, bool is_record);
  void read(std::uint64_t offset, char* to, std::size_t size);
  void set_size(std::uint64_t size);
  std::uint64_t size() const { return size_; }

 private:
  static constexpr std::size_t kPage = 4096;
  using Page = std::array<char, kPage>;
  void keep(std::uint64_t offset, const char* bytes, std::size_t size);
  void read_from_disk(std::uint64_t offset, char* to, std::size_t size);

  FileWriter& file_;
  Hdf5Handle driver_;  // HDF5 reads its own record of a driver once more after the last file of it is closed
  std::uint64_t size_ = 0;
  std::exception_ptr failure_;
  std::map<std::uint64_t, Page> kept_;  // by number of page: written after the failure
};

}  // namespace memwall
