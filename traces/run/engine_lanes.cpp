#include "traces/run/engine_lanes.h"

#include <algorithm>
#include <set>

#include "traces/run/lane_names.h"

namespace memwall {

EngineLanes::EngineLanes(const Trace& trace, const Machine& machine) : places_(trace.places.size()) {
  std::vector<int> tiers;
  for (const std::string& place : trace.places) tiers.push_back(machine.tier(place));
  for (const int from : tiers)
    for (const int to : tiers)
      for (const bool pageable : {false, true}) {
        const Route* const route = from < 0 || to < 0 ? nullptr : machine.route(from, to, pageable);
        engines_.push_back(route && route->engine < kEngines ? route->engine : kNoEngine);
      }
  for (const Stream& stream : trace.streams) devices_.push_back(stream.device);
}

std::uint8_t EngineLanes::engine_of(const Op& op) const {
  if (op.kind != OpKind::copy && op.kind != OpKind::storage_io) return kNoEngine;
  return engines_[(op.from * places_ + op.to) * 2 + (op.pageable ? 1 : 0)];
}

std::uint8_t EngineLanes::lane_of(const Op& op) const {
  const std::uint8_t engine = engine_of(op);
  if (engine == kNoEngine) return kNoLane;
  const auto found = lanes_.find({engine, device_of(op)});
  return found == lanes_.end() ? kNoLane : found->second;
}

std::vector<RunLane> engine_lanes(const Run& run, std::size_t before) {
  const Trace& trace = run.trace;
  const EngineLanes engines(trace, run.machine);
  std::set<std::pair<std::uint8_t, std::uint16_t>> used;
  std::uint16_t last_device = 0;
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const Op& op = trace.ops[id];
    if ((op.kind != OpKind::copy && op.kind != OpKind::storage_io) || !has_work(op, run.result.records[id])) continue;
    if (engines.engine_of(op) == EngineLanes::kNoEngine) continue;
    used.insert({engines.engine_of(op), engines.device_of(op)});
    last_device = std::max(last_device, engines.device_of(op));
  }
  std::vector<RunLane> lanes;
  for (const auto& [engine, device] : used) {
    if (before + lanes.size() >= kNoLane) break;
    RunLane lane;
    lane.kind = RunLaneKind::engine;
    lane.index = static_cast<std::uint16_t>(lanes.size());
    lane.rank = rank_of_device(trace, device);
    lane.name = engine_lane_name(trace, engine, device, last_device);
    lane.engine = engine;
    lane.device = device;
    lanes.push_back(std::move(lane));
  }
  return lanes;
}

}  // namespace memwall
