// A file in the scratch folder that is full of known contents, and transfers to and from regions of it that no
// transfer touched lately.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "validate/bench/benchmark.h"
#include "validate/bench/page_buffer.h"
#include "validate/measurement/direct_file.h"

namespace memwall {

class FilledFile {
 public:
  // Writes `bytes` (at most what settings allow, in whole 64 KiB), or as much as there is time for. Throws
  // NotApplicable where there is no room for it.
  FilledFile(const BenchmarkRun& run, const std::string& name, std::size_t bytes);

  std::size_t bytes() const { return filled_; }
  const std::filesystem::path& path() const { return path_; }
  DirectFile& file() { return file_; }

  // Samples reads (writes) of `bytes` each through `handle`; fills `m`. What is read is compared, all of it;
  // of what is written, the latest 64 MiB. REQUIRES: 0 < bytes <= bytes(), a multiple of 4096; no reads after
  // writes; bytes at most 256 MiB.
  void measure_reads(const BenchmarkRun& run, DirectFile& handle, std::size_t bytes, Measurement& m);
  void measure_writes(const BenchmarkRun& run, DirectFile& handle, std::size_t bytes, Measurement& m);

 private:
  void shuffle_regions(std::size_t bytes);
  std::size_t next_region();
  void fill(std::size_t offset, std::size_t bytes);
  bool holds(std::size_t offset, std::size_t bytes) const;

  std::filesystem::path path_;
  DirectFile file_;
  std::size_t filled_ = 0;
  std::uint64_t tag_;
  PageBuffer buffer_;
  std::vector<std::size_t> regions_;  // offsets, in random order
  std::size_t next_ = 0;
};

}  // namespace memwall
