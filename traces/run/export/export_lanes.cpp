#include "traces/run/export/export_lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "traces/run/lane_names.h"

namespace memwall {
std::string_view to_string(LaneGroup group) {
  static constexpr std::string_view words[kLaneGroups] = {"Host threads", "Streams", "Copy engines", "Pager"};
  return words[static_cast<std::size_t>(group)];
}

const std::string& display_name(const Trace& trace, const Op& op) {
  static const std::vector<std::string> kinds = [] {
    std::vector<std::string> words;
    for (int k = 0; k < kOpKinds; ++k) words.emplace_back(to_string(static_cast<OpKind>(k)));
    return words;
  }();
  if (op.name != 0) return trace.strings[op.name];
  if (op.operator_name != 0) return trace.strings[op.operator_name];
  return kinds[static_cast<std::size_t>(op.kind)];
}

std::string exact_microseconds(Time time) {
  const std::int64_t ps = time.count();
  const std::uint64_t size =
      ps < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(ps) : static_cast<std::uint64_t>(ps);
  std::string text = fmt::format("{}{}", ps < 0 ? "-" : "", size / 1'000'000);
  if (const std::uint64_t rest = size % 1'000'000; rest != 0) {
    text += fmt::format(".{:06}", rest);
    text.erase(text.find_last_not_of('0') + 1);
  }
  return text;
}

std::uint32_t LanePacker::place(Time begin, Time end) {
  std::uint32_t lane = 0;
  while (lane < free_from_.size() && free_from_[lane] > begin) ++lane;
  if (lane == free_from_.size()) free_from_.emplace_back();
  free_from_[lane] = end;
  return lane;
}

std::string LanePacker::name(const std::string& first, std::uint32_t lane) {
  return lane == 0 ? first : fmt::format("{} ({})", first, lane + 1);
}

ExportLanes::ExportLanes(const Run& run) : run_(run) {
  const Trace& trace = run.trace;
  const bool several = has_several_devices(trace);
  for (const HostThread& thread : trace.threads) lanes_.push_back({LaneGroup::host, thread_lane_name(trace, thread)});
  for (const Stream& stream : trace.streams)
    lanes_.push_back({LaneGroup::stream, stream_lane_name(trace, stream, several)});
  add_engines();
  add_moves();
}

void ExportLanes::add_engines() {
  const Trace& trace = run_.trace;
  std::vector<int> tier_of_place;
  for (const std::string& place : trace.places) tier_of_place.push_back(run_.machine.tier(place));
  std::map<std::pair<std::uint8_t, std::uint16_t>, std::vector<ExportSlice>> engines;  // by class and device
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Op& op = trace.ops[id];
    const OpRecord& record = run_.result.records[id];
    if ((op.kind != OpKind::copy && op.kind != OpKind::storage_io) || !has_work(op, record)) continue;
    const int from = tier_of_place[op.from], to = tier_of_place[op.to];
    const Route* const route = from < 0 || to < 0 ? nullptr : run_.machine.route(from, to, op.pageable);
    if (route && route->engine < kEngines)
      engines[{route->engine, trace.streams[op.stream].device}].push_back({0, record.start, record.end, id, 0});
  }
  std::uint16_t last_device = 0;
  for (const auto& [key, slices] : engines) last_device = std::max(last_device, key.second);
  for (auto& [key, slices] : engines)
    add_packed(LaneGroup::engine, engine_lane_name(trace, key.first, key.second, last_device), std::move(slices));
}

void ExportLanes::add_moves() {
  std::map<std::pair<std::uint16_t, std::uint16_t>, std::vector<ExportSlice>> moves;  // by tiers
  for (std::uint32_t i = 0; i < run_.result.moves.size(); ++i) {
    const MoveRecord& move = run_.result.moves[i];
    moves[{move.from, move.to}].push_back({0, move.start, move.end, kNoOp, i});
  }
  for (auto& [tiers, slices] : moves)
    add_packed(LaneGroup::pager, pager_lane_name(run_.machine, tiers.first, tiers.second), std::move(slices));
}

void ExportLanes::add_packed(LaneGroup group, const std::string& name, std::vector<ExportSlice> slices) {
  std::stable_sort(slices.begin(), slices.end(), [](const ExportSlice& a, const ExportSlice& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  const auto first_lane = static_cast<std::uint32_t>(lanes_.size());
  LanePacker packer;
  for (ExportSlice& slice : slices) slice.lane = first_lane + packer.place(slice.begin, slice.end);
  for (std::uint32_t lane = 0; lane < packer.lanes(); ++lane) lanes_.push_back({group, LanePacker::name(name, lane)});
  packed_.insert(packed_.end(), slices.begin(), slices.end());
}

void ExportLanes::for_each(const std::function<void(const ExportSlice&)>& visit) const {
  const Trace& trace = run_.trace;
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const OpRecord& record = run_.result.records[id];
    if (has_call(trace.ops[id], record)) visit({host_lane(trace.ops[id]), record.host_start, record.host_end, id, 0});
  }
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const OpRecord& record = run_.result.records[id];
    if (has_work(trace.ops[id], record)) visit({stream_lane(trace.ops[id]), record.start, record.end, id, 0});
  }
  for (const ExportSlice& slice : packed_) visit(slice);
}

std::vector<ExportEdge> ExportLanes::edges() const {
  const std::vector<OpRecord>& records = run_.result.records;
  const std::vector<Op>& ops = run_.trace->ops;
  const auto works = [&](OpId id) { return id < ops.size() && has_work(ops[id], records[id]); };
  const auto calls = [&](OpId id) { return id < ops.size() && has_call(ops[id], records[id]); };
  std::vector<ExportEdge> edges;
  for (OpId id = 0; id < ops.size(); ++id) {
    const OpRecord& r = records[id];
    if (r.host_reason == WaitReason::hand_over && calls(id) && calls(r.host_cause))
      edges.push_back({r.host_cause, id, true, true});
    if (r.device_reason == WaitReason::event && works(id) && works(r.device_cause))
      edges.push_back({r.device_cause, id, false, false});
    if (r.host_end_waited && calls(id) && works(r.host_end_cause)) edges.push_back({r.host_end_cause, id, true, false});
  }
  return edges;
}

}  // namespace memwall
