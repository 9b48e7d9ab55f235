// What a file's own numbers stand for. Numbers come about in order, from 0; a file that does otherwise
// costs a hash table, not memory for what lies between.
#pragma once

#include <algorithm>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace memwall {

class NumberTable {
 public:
  static constexpr std::uint32_t kAbsent = 0xffffffff;

  std::uint32_t find(std::uint32_t number) const {
    if (number < dense_.size() && dense_[number] != kAbsent) return dense_[number];
    if (sparse_.empty()) return kAbsent;
    const auto found = sparse_.find(number);
    return found == sparse_.end() ? kAbsent : found->second;
  }

  // REQUIRES: the number is absent.
  void put(std::uint32_t number, std::uint32_t index) {
    ++count_;
    if (number >= 4 * count_ + 4096) {
      sparse_.emplace(number, index);
      return;
    }
    if (number >= dense_.size()) dense_.resize(number + std::uint64_t{1}, kAbsent);
    dense_[number] = index;
  }

 private:
  std::vector<std::uint32_t> dense_;
  std::unordered_map<std::uint32_t, std::uint32_t> sparse_;  // looked up only
  std::uint64_t count_ = 0;
};

}  // namespace memwall
