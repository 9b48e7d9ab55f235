// The ops that the next op of a stream waits for, in the order in which they were named, each once.
#pragma once

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "sim/trace/op.h"

namespace memwall {

// Mostly one or two. Offloaded parameters may make it a hundred thousand, so that adding is constant in their number.
class PendingProducers {
 public:
  void add(OpId producer) {
    if (known(producer)) return;
    list_.push_back(producer);
    if (list_.size() > kFew) seen_.insert(producer);
    if (list_.size() == kFew + 1) seen_.insert(list_.begin(), list_.end());
  }
  void clear() {
    list_.clear();
    if (!seen_.empty()) seen_.clear();
  }
  const std::vector<OpId>& list() const { return list_; }

 private:
  static constexpr std::size_t kFew = 16;

  bool known(OpId producer) const {
    if (list_.size() > kFew) return seen_.contains(producer);
    return std::find(list_.begin(), list_.end(), producer) != list_.end();
  }

  std::vector<OpId> list_;
  std::unordered_set<OpId> seen_;  // all of them, where there are more than kFew
};

}  // namespace memwall
