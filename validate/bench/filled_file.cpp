#include "validate/bench/filled_file.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "sim/error.h"
#include "validate/replay/pattern.h"

namespace memwall {
namespace {

constexpr std::size_t kPiece = std::size_t{16} << 20;         // of filling
constexpr std::size_t kGranule = std::size_t{64} << 10;       // of sizes
constexpr std::size_t kCheckedBytes = std::size_t{64} << 20;  // of what was written
constexpr std::size_t kLargestTransfer = std::size_t{256} << 20;

std::size_t allowed(const BenchmarkRun& run, std::size_t bytes) {
  const std::size_t whole = std::min(bytes, run.settings().largest_file) / kGranule * kGranule;
  if (whole == 0)
    throw NotApplicable("files may have " + std::to_string(run.settings().largest_file) +
                        " bytes; expected at least 64 KiB");
  return whole;
}

template <class Operation>
double seconds_of(const Operation& operation) {
  const auto start = std::chrono::steady_clock::now();
  operation();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void note_failure(Measurement& m, std::size_t offset) {
  m.status = MeasurementStatus::failed;
  m.note = "the region at byte " + std::to_string(offset) + " does not hold what was written";
}

}  // namespace

FilledFile::FilledFile(const BenchmarkRun& run, const std::string& name, std::size_t bytes) try
    : path_(run.settings().scratch / name),
      file_(path_, allowed(run, bytes), {}),
      tag_(run.settings().seed),
      buffer_(std::max(kPiece, std::min(kLargestTransfer, allowed(run, bytes)))) {
  const std::size_t whole = allowed(run, bytes);
  while (filled_ < whole && (filled_ == 0 || !run.out_of_time())) {
    const std::size_t piece = std::min(kPiece, whole - filled_);
    fill(filled_, piece);
    file_.write(buffer_.as(), piece, filled_);
    filled_ += piece;
  }
} catch (const UsageError& error) {
  throw NotApplicable(error.what());
}

void FilledFile::fill(std::size_t offset, std::size_t bytes) {
  auto* const words = buffer_.as<std::uint64_t>();
  for (std::size_t i = 0; i < bytes / 8; ++i) words[i] = pattern_word(tag_, offset / 8 + i);
}

bool FilledFile::holds(std::size_t offset, std::size_t bytes) const {
  const auto* const words = buffer_.as<std::uint64_t>();
  for (std::size_t i = 0; i < bytes / 8; ++i)
    if (words[i] != pattern_word(tag_, offset / 8 + i)) return false;
  return true;
}

void FilledFile::shuffle_regions(std::size_t bytes) {
  regions_.clear();
  for (std::size_t offset = 0; offset + bytes <= filled_; offset += bytes) regions_.push_back(offset);
  std::mt19937_64 random(tag_);
  for (std::size_t i = regions_.size(); i > 1; --i) std::swap(regions_[i - 1], regions_[random() % i]);
  next_ = 0;
}

std::size_t FilledFile::next_region() { return regions_[next_++ % regions_.size()]; }

void FilledFile::measure_reads(const BenchmarkRun& run, DirectFile& handle, std::size_t bytes, Measurement& m) {
  shuffle_regions(bytes);
  run.sample(m, [&] {
    const std::size_t offset = next_region();
    std::memset(buffer_.as(), 0xa5, bytes);
    const double seconds = seconds_of([&] { handle.read(buffer_.as(), bytes, offset); });
    if (!holds(offset, bytes)) note_failure(m, offset);
    return seconds;
  });
}

void FilledFile::measure_writes(const BenchmarkRun& run, DirectFile& handle, std::size_t bytes, Measurement& m) {
  ++tag_;  // what an earlier case left is not taken for this one's
  shuffle_regions(bytes);
  run.sample(m, [&] {
    const std::size_t offset = next_region();
    fill(offset, bytes);
    return seconds_of([&] { handle.write(buffer_.as(), bytes, offset); });
  });
  const std::size_t written = std::min(next_, regions_.size());
  for (std::size_t i = 0; i < written && (i == 0 || i * bytes < kCheckedBytes); ++i) {
    const std::size_t offset = regions_[(next_ - 1 - i) % regions_.size()];
    std::memset(buffer_.as(), 0xa5, bytes);
    file_.read(buffer_.as(), bytes, offset);
    if (!holds(offset, bytes)) note_failure(m, offset);
  }
}

}  // namespace memwall
