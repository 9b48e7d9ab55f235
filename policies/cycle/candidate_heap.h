// Candidates of a choice of moves, the best on top. Internal to policies/cycle.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace memwall {

// A gap: the better, the more time over the budget it covers.
struct Candidate {
  double score = 0;
  std::uint32_t gap = 0;
  friend bool operator<(const Candidate& a, const Candidate& b) {
    if (a.score != b.score) return a.score < b.score;
    return a.gap > b.gap;
  }
};

// A queue by score whose top gets another score where it is: most candidates are looked at many times before they are
// taken. A tournament: what wins is known of each pair, and of each pair of winners.
class CandidateHeap {
 public:
  // REQUIRES: scores > 0.
  explicit CandidateHeap(const std::vector<Candidate>& candidates)
      : first_(std::bit_ceil(std::max<std::size_t>(1, candidates.size()))), best_(2 * first_) {
    for (std::size_t i = 0; i < candidates.size(); ++i) best_[first_ + i] = key(candidates[i].score, i);
    for (std::size_t i = 0; i < candidates.size(); ++i) gaps_.push_back(candidates[i].gap);
    for (std::size_t node = first_ - 1; node > 0; --node) best_[node] = std::max(best_[2 * node], best_[2 * node + 1]);
  }

  bool empty() const { return best_[1] == 0; }
  // The gap of the best score; of equal ones the first that was given. REQUIRES: !empty().
  std::uint32_t top() const { return gaps_[place(best_[1])]; }
  // Of the best beside the top; none: 0. REQUIRES: !empty().
  double next_score() const {
    Key next = 0;
    for (std::size_t node = first_ + place(best_[1]); node > 1; node /= 2) next = std::max(next, best_[node ^ 1]);
    return std::bit_cast<double>(static_cast<std::uint64_t>(next >> kPlaceBits));
  }
  // REQUIRES: !empty(), score > 0.
  void rescore_top(double score) { set_top(key(score, place(best_[1]))); }
  // REQUIRES: !empty().
  void pop() { set_top(0); }

 private:
  // Bits of scores, which are ordered as these are, above those of places, the first the highest.
  __extension__ typedef unsigned __int128 Key;
  static constexpr int kPlaceBits = 32;
  static Key key(double score, std::size_t place) {
    return Key{std::bit_cast<std::uint64_t>(score)} << kPlaceBits | static_cast<std::uint32_t>(~place);
  }
  static std::size_t place(Key key) { return static_cast<std::uint32_t>(~static_cast<std::uint32_t>(key)); }

  void set_top(Key key) {
    std::size_t node = first_ + place(best_[1]);
    best_[node] = key;
    for (; node > 1; node /= 2) best_[node / 2] = std::max(best_[node], best_[node ^ 1]);
  }

  std::size_t first_;      // of the leaves
  std::vector<Key> best_;  // by node: of its leaves; 0: none is left
  std::vector<std::uint32_t> gaps_;
};

}  // namespace memwall
