#include "models/workload/import/timed/event_order.h"

#include <algorithm>

namespace memwall {
namespace {

template <class Event, class Get>
void rebase(std::vector<Event>& events, std::int64_t first, Get time) {
  for (Event& event : events) time(event) = Time((time(event).count() - first) * 1000);
}

// What began at the same instant: the outer span first, or what was numbered first.
bool precedes(const CapturedOperator& a, const CapturedOperator& b) {
  return a.duration != b.duration ? a.duration > b.duration : a.external_id < b.external_id;
}
bool precedes(const CapturedCall& a, const CapturedCall& b) { return a.correlation < b.correlation; }
bool precedes(const CapturedDeviceOp& a, const CapturedDeviceOp& b) { return a.correlation < b.correlation; }
bool precedes(const CapturedSync& a, const CapturedSync& b) { return a.correlation < b.correlation; }
bool precedes(const CapturedModule& a, const CapturedModule& b) { return a.duration > b.duration; }

template <class Event>
void rebase_spans(std::vector<Event>& events, std::int64_t first) {
  rebase(events, first, [](Event& event) -> Time& { return event.start; });
  for (Event& event : events) event.duration *= 1000;
  const auto earlier = [](const Event& a, const Event& b) {
    return a.start != b.start ? a.start < b.start : precedes(a, b);
  };
  if (!std::is_sorted(events.begin(), events.end(), earlier)) std::stable_sort(events.begin(), events.end(), earlier);
}

// Innermost span of the same thread around each; spans are sorted by start, longest first.
template <class Event>
void find_parents(std::vector<Event>& events, std::size_t threads) {
  std::vector<std::vector<std::uint32_t>> open(threads);
  for (std::uint32_t i = 0; i < events.size(); ++i) {
    std::vector<std::uint32_t>& stack = open[events[i].thread];
    while (!stack.empty() &&
           (events[stack.back()].end() < events[i].end() ||
            (events[stack.back()].end() == events[i].start && events[i].start > events[stack.back()].start)))
      stack.pop_back();
    events[i].parent = stack.empty() ? kNoIndex : stack.back();
    stack.push_back(i);
  }
}

}  // namespace

void CaptureTimeRange::see(std::int64_t ns) {
  first_ns = std::min(first_ns, ns);
  last_ns = std::max(last_ns, ns);
}

std::string CaptureTimeRange::problem() const {
  if (last_ns > first_ns && last_ns - first_ns > kLongestWindow)
    return "the first and the last event lie " + std::to_string((last_ns - first_ns) / 86'400'000'000'000) +
           " days apart; expected at most 10.";
  // One after the other, as a replay may run them, they must still fit.
  if (busy_ns > 4 * static_cast<double>(kLongestWindow))
    return "the durations of calls and device work add up to more than 40 days; expected less.";
  return "";
}

void order_events(TimedCapture& capture, const CaptureTimeRange& span) {
  const std::int64_t first = span.first_ns > span.last_ns ? 0 : span.first_ns;
  capture.first_event_ns = first;
  rebase_spans(capture.operators, first);
  rebase_spans(capture.calls, first);
  rebase_spans(capture.device_ops, first);
  rebase_spans(capture.syncs, first);
  rebase_spans(capture.modules, first);
  rebase(capture.memory, first, [](CapturedMemory& event) -> Time& { return event.time; });
  const auto earlier = [](const CapturedMemory& a, const CapturedMemory& b) { return a.time < b.time; };
  if (!std::is_sorted(capture.memory.begin(), capture.memory.end(), earlier))
    std::stable_sort(capture.memory.begin(), capture.memory.end(), earlier);
  find_parents(capture.operators, capture.threads.size());
  find_parents(capture.modules, capture.threads.size());
}

}  // namespace memwall
