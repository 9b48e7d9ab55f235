// What tests of the caching allocator look at.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/memory/pytorch_allocator.h"

namespace memwall {

inline constexpr Bytes kUnlimited = Bytes{1} << 50;
inline constexpr Bytes M = MiB(1);

inline Address get(PytorchAllocator& allocator, Bytes bytes, std::uint16_t stream = 0) {
  const auto address = allocator.allocate(bytes, stream);
  EXPECT_TRUE(address.has_value()) << bytes;
  return address.value_or(0);
}

// Of all free, mapped blocks, ascending.
inline std::vector<Bytes> free_sizes(const PytorchAllocator& allocator) {
  std::vector<Bytes> sizes;
  for (const SegmentState& segment : allocator.segments())
    for (const BlockState& block : segment.blocks)
      if (block.use == BlockState::Use::free) sizes.push_back(block.size);
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

// Every call of an observer as a word, sizes in MiB: "alloc 20", "refused 46", ...
class Told final : public AllocatorObserver {
 public:
  void on_segment_alloc(Address, Bytes bytes, std::uint16_t) override { add("alloc", bytes); }
  void on_segment_free(Address, Bytes bytes, std::uint16_t) override { add("free", bytes); }
  void on_segment_map(Address, Bytes bytes, std::uint16_t) override { add("map", bytes); }
  void on_segment_unmap(Address, Bytes bytes, std::uint16_t) override { add("unmap", bytes); }
  void on_retry_step(RetryStep retry_step, Bytes bytes) override {
    static const char* const words[] = {"collect", "refused", "release_available", "release_cached", "served", "oom"};
    add(words[static_cast<int>(retry_step)], bytes);
  }
  // What was told since the last call.
  std::vector<std::string> take() {
    std::vector<std::string> words;
    words.swap(words_);
    return words;
  }

 private:
  void add(const std::string& word, Bytes bytes) { words_.push_back(word + " " + std::to_string(bytes / M)); }
  std::vector<std::string> words_;
};

}  // namespace memwall
