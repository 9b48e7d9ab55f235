// Writes and compares known contents (replay/pattern.h) in the memory of this computer.
#pragma once

#include <cstdint>
#include <mutex>
#include <span>
#include <string>

#include "validate/replay/backend.h"

namespace memwall {

// Bytes `first_word * 8` to `first_word * 8 + bytes` of pattern(tag) into `data`; a word that is cut off leaves
// its low bytes.
void fill_pattern(void* data, Bytes bytes, std::uint64_t tag, std::uint64_t first_word = 0);

// How `data` differs from pattern(tag).
struct PatternDifference {
  std::uint64_t words = 0;  // that differ, a cut-off last one included
  Bytes first = 0;          // offset of the first such word
};
PatternDifference compare_pattern(const void* data, Bytes bytes, std::uint64_t tag);

// Counts what was compared in checked passes. May be used from several threads.
class ContentCheck {
 public:
  void reset();
  // Compares the first `bytes` of a buffer in memory with `tag`, notes the result. `role` is for the sentence:
  // "reads", "has copied". Tag 0 and buffers in a file are not looked at.
  void expect(OpId id, const char* role, const Buffer& buffer, Bytes bytes, std::uint64_t tag);
  // Before an op: each operand that has something `expected`.
  void expect_all(OpId id, std::span<const Operand> operands);
  // REQUIRES: nothing runs.
  const IntegrityCount& count() const { return count_; }

 private:
  std::mutex mutex_;
  IntegrityCount count_;
};

// After an op: each operand in memory that it makes.
void fill_all(std::span<const Operand> operands);

}  // namespace memwall
