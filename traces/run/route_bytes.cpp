#include "traces/run/route_bytes.h"

#include <utility>

namespace memwall {

RouteBytes::RouteBytes(const Run& run) : run_(run), bytes_(run.machine.one.routes.size(), 0) {
  for (const std::string& place : run.trace->places) tier_of_place_.push_back(run.machine.one.tier(place));
}

void RouteBytes::add(int from, int to, bool pageable, Bytes bytes) {
  const auto& routes = run_.machine.one.routes;
  if (const Route* route = route_among(routes, from, to, pageable))
    bytes_[static_cast<std::size_t>(route - routes.data())] += bytes;
}

void RouteBytes::add(OpId first, OpId last) {
  const Trace& trace = run_.trace;
  for (OpId id = first; id < last; ++id) {
    const Op& op = trace.ops[id];
    if (op.kind != OpKind::copy && op.kind != OpKind::storage_io) continue;
    if (op.from < tier_of_place_.size() && op.to < tier_of_place_.size())
      add(tier_of_place_[op.from], tier_of_place_[op.to], op.pageable, op.bytes);
  }
}

// A pager has one rank's machine.
void RouteBytes::add_move(const MoveRecord& move) {
  const Machine& machine = run_.machine.one;
  if (move.from == move.to) return;
  if (machine.route(move.from, move.to, false)) return add(move.from, move.to, false, move.bytes);
  for (std::size_t middle = 0; middle < machine.tiers.size(); ++middle) {
    const int between = static_cast<int>(middle);
    if (!machine.route(move.from, between, false) || !machine.route(between, move.to, false)) continue;
    add(move.from, between, false, move.bytes);
    return add(between, move.to, false, move.bytes);
  }
}

std::vector<Bytes> RouteBytes::take() {
  for (const MoveRecord& move : run_.result.moves) add_move(move);
  return std::move(bytes_);
}

std::vector<Bytes> route_bytes(const Run& run) {
  RouteBytes bytes(run);
  bytes.add(0, static_cast<OpId>(run.trace->ops.size()));
  return bytes.take();
}

}  // namespace memwall
