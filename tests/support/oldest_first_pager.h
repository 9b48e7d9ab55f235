// A pager for tests that need one without a policy: to make room, what was used longest ago goes to tier 1.
#pragma once

#include "sim/policy/pager.h"

namespace memwall {

class OldestFirstPager final : public Pager {
 public:
  explicit OldestFirstPager(PagerClock clock) : clock_(clock) {}
  PagerClock clock() const override { return clock_; }
  std::vector<Move> make_room(int, Bytes, const PagerView& view) override {
    std::vector<Move> moves;
    view.each_movable([&](const ResidentStorage& oldest) {
      moves.push_back({MoveKind::evict, oldest.storage, 1});
      return false;
    });
    return moves;
  }

 private:
  PagerClock clock_;
};

}  // namespace memwall
