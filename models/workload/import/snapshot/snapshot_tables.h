// Texts, source frames and stacks of a snapshot, each kept once and numbered in the order in which they were first met.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/workload/memory/recording.h"

namespace memwall {

// Finds numbers by hash. The hash has a key of its own in every process, so that no file can be made whose entries all
// collide; numbers do not depend on it.
class NumberIndex {
 public:
  // The number for which `equal` holds, or `next`, which is added.
  template <class Equal>
  std::uint32_t find_or_add(std::uint64_t hash, std::uint32_t next, Equal equal) {
    if (2 * (used_ + 1) > slots_.size()) grow();
    const auto short_hash = static_cast<std::uint32_t>(hash >> 32);
    for (std::size_t at = short_hash & mask();; at = (at + 1) & mask()) {
      if (slots_[at].number == kFree) {
        slots_[at] = {short_hash, next};
        ++used_;
        return next;
      }
      if (slots_[at].hash == short_hash && equal(slots_[at].number)) return slots_[at].number;
    }
  }

 private:
  static constexpr std::uint32_t kFree = 0xffffffff;
  struct Slot {
    std::uint32_t hash = 0, number = kFree;
  };
  std::size_t mask() const { return slots_.size() - 1; }
  void grow();

  std::vector<Slot> slots_;  // a power of two of them, at most half used
  std::size_t used_ = 0;
};

class TextTable {
 public:
  std::uint32_t add(std::string_view text);
  std::string_view operator[](std::uint32_t number) const {
    return std::string_view(characters_).substr(ends_[number], ends_[number + 1] - ends_[number]);
  }
  std::size_t size() const { return ends_.size() - 1; }

 private:
  std::string characters_;
  std::vector<std::uint64_t> ends_{0};
  NumberIndex index_;
};

class FrameTable {
 public:
  std::uint32_t add(const SourceFrame& frame);
  std::vector<SourceFrame>& frames() { return frames_; }

 private:
  std::vector<SourceFrame> frames_;
  NumberIndex index_;
};

// Number 0 is the empty stack.
class StackTable {
 public:
  StackTable() { add({}); }
  StackId add(std::span<const std::uint32_t> frames);
  std::vector<std::vector<std::uint32_t>>& stacks() { return stacks_; }

 private:
  std::vector<std::vector<std::uint32_t>> stacks_;
  NumberIndex index_;
};

}  // namespace memwall
