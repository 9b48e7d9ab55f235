#include "models/workload/import/timed/host_program.h"

#include <algorithm>
#include <tuple>

namespace memwall {
namespace {

bool is_operator(const ProgramPoint& p) {
  return p.kind == PointKind::operator_start || p.kind == PointKind::operator_end;
}

bool is_long(const CapturedOperator& range) { return range.duration >= microseconds(range.annotation ? 100 : 1000); }

// Marks the start of every range in which the host works alone, and drops the points between its ends. Without it that
// time would be a nameless gap before the next call. REQUIRES: ascending in time.
void name_host_work(std::vector<ProgramPoint>& points, const TimedCapture& c) {
  // Per point, the next one that is more than an operator of its thread.
  std::vector<std::uint32_t> other(points.size(), static_cast<std::uint32_t>(points.size()));
  for (std::size_t i = points.size(); i-- > 1;)
    other[i - 1] =
        is_operator(points[i]) && points[i].thread == points[i - 1].thread ? other[i] : static_cast<std::uint32_t>(i);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    points[kept++] = points[i];
    if (points[i].kind != PointKind::operator_start) continue;
    const CapturedOperator& range = c.operators[points[i].index];
    if (!is_long(range) || (other[i] < points.size() && points[other[i]].time < range.end())) continue;
    points[kept - 1].kind = PointKind::range;
    while (i + 1 < other[i] && points[i + 1].time <= range.end()) ++i;
  }
  points.resize(kept);
}

// Operators only tell which thread runs: between two points of their own thread they say nothing. Of a large capture
// they are most points.
void keep_what_matters(std::vector<ProgramPoint>& points) {
  std::size_t kept = 0;
  std::uint16_t before = 0;  // thread of the point in front, kept or not
  for (std::size_t i = 0; i < points.size(); ++i) {
    const ProgramPoint point = points[i];
    const bool inside =
        i > 0 && i + 1 < points.size() && before == point.thread && points[i + 1].thread == point.thread;
    before = point.thread;
    if (!inside || !is_operator(point)) points[kept++] = point;
  }
  points.resize(kept);
  points.shrink_to_fit();
}

}  // namespace

std::vector<ProgramPoint> merge_host_events(const JoinedCapture& joined, const CapturePhases& phases) {
  const TimedCapture& c = *joined.capture;
  std::vector<ProgramPoint> points;
  points.reserve(c.operators.size() * 2 + c.calls.size() + c.memory.size() + phases.steps().size());
  for (std::uint32_t i = 0; i < c.operators.size(); ++i) {
    points.push_back({c.operators[i].start, i, c.operators[i].thread, PointKind::operator_start});
    points.push_back({c.operators[i].end(), i, c.operators[i].thread, PointKind::operator_end});
  }
  for (std::uint32_t i = 0; i < c.calls.size(); ++i)
    if (joined.thread_kept[c.calls[i].thread])
      points.push_back({c.calls[i].start, i, c.calls[i].thread, PointKind::call});
  for (std::uint32_t i = 0; i < c.memory.size(); ++i)
    if (c.memory[i].on_device()) points.push_back({c.memory[i].time, i, c.memory[i].thread, PointKind::memory});
  for (std::uint32_t i = 0; i < phases.steps().size(); ++i)
    points.push_back({phases.steps()[i].start, i, phases.steps()[i].thread, PointKind::step});
  std::sort(points.begin(), points.end(), [](const ProgramPoint& a, const ProgramPoint& b) {
    return std::tie(a.time, a.thread, a.kind, a.index) < std::tie(b.time, b.thread, b.kind, b.index);
  });
  std::uint16_t running = points.empty() ? 0 : points.front().thread;
  for (auto begin = points.begin(); begin != points.end();) {
    const auto end = std::find_if(begin, points.end(), [&](const ProgramPoint& p) { return p.time != begin->time; });
    if (begin->thread != (end - 1)->thread)
      std::stable_partition(begin, end, [&](const ProgramPoint& p) { return p.thread == running; });
    running = (end - 1)->thread;
    begin = end;
  }
  name_host_work(points, c);
  keep_what_matters(points);
  return points;
}

}  // namespace memwall
