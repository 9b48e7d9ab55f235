// How long each class of time lasts within any range, known at once however many spans there are.
//
// Sums before every kSumBlock-th span: a question costs two binary searches and at most two blocks. Spans are
// ascending and disjoint (ClassSpan, PathSegment); where none lies, no class does.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "traces/run/analysis/accounting.h"

namespace memwall::gui {

class ClassSums {
 public:
  static constexpr std::size_t kSumBlock = 64;

  ClassSums() = default;
  template <class Span>
  explicit ClassSums(const std::vector<Span>& spans) {
    ClassTimes sum;
    before_.reserve(spans.size() / kSumBlock + 1);
    for (std::size_t i = 0; i < spans.size(); ++i) {
      if (i % kSumBlock == 0) before_.push_back(sum);
      sum[spans[i].time_class] += spans[i].end - spans[i].begin;
    }
  }

  // REQUIRES: `spans` are those that the sums were made of; begin <= end.
  template <class Span>
  ClassTimes within(const std::vector<Span>& spans, Time begin, Time end) const {
    ClassTimes times = until(spans, end);
    const ClassTimes earlier = until(spans, begin);
    for (std::size_t c = 0; c < kTimeClasses; ++c) times.by_class[c] -= earlier.by_class[c];
    return times;
  }

  // The index of the span at `time`, or of the first after it; spans.size() behind all.
  template <class Span>
  static std::size_t at(const std::vector<Span>& spans, Time time) {
    const auto found =
        std::upper_bound(spans.begin(), spans.end(), time, [](Time t, const Span& span) { return t < span.end; });
    return static_cast<std::size_t>(found - spans.begin());
  }

  std::size_t bytes() const { return before_.capacity() * sizeof(ClassTimes); }

 private:
  template <class Span>
  ClassTimes until(const std::vector<Span>& spans, Time time) const {
    const std::size_t last = at(spans, time);  // the first that does not end before
    if (before_.empty()) return {};
    const std::size_t block = std::min(last / kSumBlock, before_.size() - 1);
    ClassTimes times = before_[block];
    for (std::size_t i = block * kSumBlock; i < last; ++i) times[spans[i].time_class] += spans[i].end - spans[i].begin;
    if (last < spans.size() && spans[last].begin < time) times[spans[last].time_class] += time - spans[last].begin;
    return times;
  }

  std::vector<ClassTimes> before_;
};

// The class that lasts longest, of equals the first.
inline TimeClass longest_class(const ClassTimes& times) {
  const auto found = std::max_element(times.by_class.begin(), times.by_class.end());
  return static_cast<TimeClass>(found - times.by_class.begin());
}

}  // namespace memwall::gui
