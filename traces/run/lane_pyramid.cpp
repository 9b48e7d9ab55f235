#include "traces/run/lane_pyramid.h"

#include <algorithm>
#include <bit>

namespace memwall {
namespace {

constexpr std::uint64_t kMostBuckets = 1 << 16;

struct Span {
  Time begin{}, end{};
};

std::uint8_t log2_ceiling(std::uint64_t value) {
  return static_cast<std::uint8_t>(value <= 1 ? 0 : std::bit_width(value - 1));
}

// Adds a span to the buckets that it crosses.
void add(std::vector<LaneBucket>& buckets, const Span& span, std::uint8_t width_log2) {
  const auto begin = static_cast<std::uint64_t>(span.begin.count()), end = static_cast<std::uint64_t>(span.end.count());
  const std::uint64_t first = begin >> width_log2;
  if (first < buckets.size()) ++buckets[first].begins;
  for (std::uint64_t b = first; b < buckets.size() && b << width_log2 < end; ++b) {
    const std::uint64_t from = std::max(begin, b << width_log2), to = std::min(end, (b + 1) << width_log2);
    buckets[b].busy += Duration(static_cast<std::int64_t>(to - from));
  }
}

// The same lane at twice the width.
std::vector<LaneBucket> halved(const std::vector<LaneBucket>& buckets) {
  std::vector<LaneBucket> out((buckets.size() + 1) / 2);
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    out[b / 2].busy += buckets[b].busy;
    out[b / 2].begins += buckets[b].begins;
  }
  return out;
}

void build_lane(LanePyramid& pyramid, Lane lane, const std::vector<Span>& spans, Time end) {
  if (spans.empty() || end.count() <= 0) return pyramid.lanes.push_back(lane);
  const auto length = static_cast<std::uint64_t>(end.count());
  // No more buckets than spans: a short run needs no pyramid to speak of.
  const std::uint64_t wanted = std::min(kMostBuckets, std::bit_ceil(static_cast<std::uint64_t>(spans.size())));
  lane.base_log2 = log2_ceiling((length + wanted - 1) / wanted);
  std::vector<LaneBucket> buckets(static_cast<std::size_t>((length >> lane.base_log2) + 1));
  for (const Span& span : spans) add(buckets, span, lane.base_log2);
  const auto number = static_cast<std::uint32_t>(pyramid.lanes.size());
  for (;; buckets = halved(buckets)) {
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      if (buckets[b].busy.count() == 0 && buckets[b].begins == 0) continue;
      pyramid.buckets.push_back(
          {number, lane.levels, static_cast<std::uint32_t>(b), buckets[b].busy, buckets[b].begins});
    }
    ++lane.levels;
    if (buckets.size() == 1) break;
  }
  pyramid.lanes.push_back(lane);
}

// What a call keeps its thread busy: its own cost and work, not the waiting.
Span call_span(const Op& op, const OpRecord& record) {
  Duration busy = record.host_end - record.host_start;
  if (record.host_end_waited) busy = std::min(busy, op.host_cost);
  return {record.host_start, record.host_start + busy};
}

}  // namespace

LanePyramid build_pyramid(const Run& run) {
  const Trace& trace = run.trace;
  std::vector<std::vector<Span>> calls(trace.threads.size()), work(trace.streams.size());
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const OpRecord& record = run.result.records[id];
    const Op& op = trace.ops[id];
    if (!op.placed && record.host_start != kNever) calls[op.thread].push_back(call_span(op, record));
    if (record.start != kNever) work[op.stream].push_back({record.start, record.end});
  }
  LanePyramid pyramid;
  for (std::size_t i = 0; i < calls.size(); ++i)
    build_lane(pyramid, {LaneKind::thread, static_cast<std::uint16_t>(i), 0, 0}, calls[i], run.result.end);
  for (std::size_t i = 0; i < work.size(); ++i)
    build_lane(pyramid, {LaneKind::stream, static_cast<std::uint16_t>(i), 0, 0}, work[i], run.result.end);
  return pyramid;
}

}  // namespace memwall
