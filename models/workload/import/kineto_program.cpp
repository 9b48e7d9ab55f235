#include "models/workload/import/kineto_program.h"

#include <algorithm>
#include <tuple>

namespace memwall {

std::vector<ProgramPoint> merge_host_events(const JoinedCapture& joined, const CapturePhases& phases) {
  const KinetoCapture& c = *joined.capture;
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
  return points;
}

}  // namespace memwall
