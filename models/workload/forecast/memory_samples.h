// Samples of a GPU's used memory as text: what nvidia-smi logs, or any table of seconds and bytes.
//
// The first line names the columns. Time: "timestamp" (2026/11/21 10:00:00.123, as nvidia-smi writes it) or "seconds".
// Memory: "memory.used [MiB]" (values with their unit or, by nounits, without) or "bytes". Further columns are skipped;
// with a column "index" (several GPUs in one log) rows of other GPUs than the first row's are.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/workload/forecast/memory_forecast.h"

namespace memwall {

struct MemorySample {
  double seconds = 0;  // since 1970 for timestamps
  Bytes used = 0;
};

// Line by line, for a log that still grows.
class MemorySampleReader {
 public:
  explicit MemorySampleReader(std::string file);

  // One line without its end. None for the header, blank lines and other GPUs. Throws InputError "FILE:LINE: ...": a
  // header without the two columns, a row with too few, what is no number or date, time that goes back.
  std::optional<MemorySample> read(std::string_view line);

  // Rows of other GPUs that were skipped, and the GPU whose rows were taken ("" = the log has no such column).
  std::size_t skipped() const { return skipped_; }
  const std::string& gpu() const { return gpu_; }
  bool has_header() const { return memory_column_ != kNone; }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  void read_header(const std::vector<std::string_view>& cells);
  double time_of(std::string_view cell) const;
  Bytes used_of(std::string_view cell) const;
  [[noreturn]] void fail(const std::string& sentence) const;

  std::string file_;
  std::size_t line_ = 0, skipped_ = 0;
  std::size_t time_column_ = kNone, memory_column_ = kNone, index_column_ = kNone;
  bool dates_ = false, in_bytes_ = false;
  std::string gpu_;
  std::optional<double> last_time_;
};

struct MemorySamples {
  std::vector<MemorySample> samples;
  std::vector<std::string> notes;
};

// A whole file (also gzip). Throws InputError, also where there is no sample.
MemorySamples read_memory_samples(const std::filesystem::path& path);

// At equal distances: as they are where the distances differ little; else the value of the latest sample, at every
// median distance, with a note.
MemorySeries series_of_samples(const std::vector<MemorySample>& samples, std::vector<std::string>& notes);

}  // namespace memwall
