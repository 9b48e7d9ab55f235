#include "traces/run/analysis/step_periods.h"

#include <algorithm>

#include "sim/duration_sum.h"
#include "sim/trace/ranks.h"

namespace memwall {
namespace {

struct RankSpan {
  Time host_begin = kNever, host_end{};
  Time gpu_begin = kNever, gpu_end{}, backlog_end{};
};

std::vector<RankSpan> rank_spans(const Run& run, const std::vector<StepWindow>& windows) {
  std::vector<RankSpan> spans(rank_ends(run).size());
  for (const StepWindow& window : windows)
    if (window.rank < spans.size()) {
      Time& begin = spans[window.rank].host_begin;
      begin = std::min(begin, window.begin - window.behind);
    }
  for (OpId id = 0; id < run.result.records.size(); ++id) {
    const Op& op = run.trace->ops[id];
    const OpRecord& record = run.result.records[id];
    const std::uint16_t rank = rank_of(run.trace, op);
    if (rank >= spans.size()) continue;  // a damaged run, which readers refuse
    RankSpan& span = spans[rank];
    if (record.host_end != kNever) span.host_end = std::max(span.host_end, record.host_end);
    if (record.start == kNever || !runs_on_device(op.kind)) continue;
    if (op.placed) {
      span.backlog_end = std::max(span.backlog_end, record.end);
    } else if (record.start >= span.host_begin) {
      span.gpu_begin = std::min(span.gpu_begin, record.start);
      span.gpu_end = std::max(span.gpu_end, record.end);
    }
  }
  return spans;
}

}  // namespace

StepPeriods step_periods(const Run& run) {
  const std::vector<StepWindow> windows = step_windows(run);
  DurationSum host, gpu;
  for (const RankSpan& span : rank_spans(run, windows)) {
    if (span.host_begin == kNever) continue;
    host += std::max(Duration{}, span.host_end - span.host_begin);
    if (span.gpu_begin == kNever) continue;
    // A kernel that starts beside the backlog has not waited for it.
    const Time begin = std::max(span.gpu_begin, std::min(span.backlog_end, span.gpu_end));
    gpu += span.gpu_end - begin;
  }
  const auto mean = [&](const DurationSum& sum) {
    return windows.empty() ? Duration{} : from_seconds(sum.seconds() / static_cast<double>(windows.size()));
  };
  return {mean(host), mean(gpu)};
}

}  // namespace memwall
