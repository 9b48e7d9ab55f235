// The ops that the next op of a stream waits for, in the order in which they were named, each once.
#pragma once

#include <algorithm>
#include <unordered_set>
#include <vector>

#include "sim/trace/op.h"

namespace memwall {

// Mostly one or two. Offloaded parameters may make it a hundred thousand, so that adding is constant in their number. A
// stream that only waits, and runs nothing, would never be rid of them: forget() is.
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
  // Those for which `is_past`, once there are twice as many as were left the last time: constant in their number, too.
  template <class IsPast>
  void forget(IsPast&& is_past) {
    if (list_.size() < worth_a_look_) return;
    std::vector<OpId> left;
    for (const OpId producer : list_)
      if (!is_past(producer)) left.push_back(producer);
    clear();
    for (const OpId producer : left) add(producer);
    worth_a_look_ = 2 * std::max(kFew, left.size());
  }
  const std::vector<OpId>& list() const { return list_; }

 private:
  static constexpr std::size_t kFew = 16;

  bool known(OpId producer) const {
    if (list_.size() > kFew) return seen_.contains(producer);
    return std::find(list_.begin(), list_.end(), producer) != list_.end();
  }

  std::vector<OpId> list_;
  std::size_t worth_a_look_ = 2 * kFew;
  std::unordered_set<OpId> seen_;  // all of them, where there are more than kFew
};

}  // namespace memwall
