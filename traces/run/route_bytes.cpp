#include "traces/run/route_bytes.h"

#include <numeric>
#include <utility>

namespace memwall {

RouteBytes::RouteBytes(const Run& run)
    : run_(run), tier_of_one_(run.machine.tiers.size()), bytes_(run.machine.one.routes.size(), 0) {
  std::iota(tier_of_one_.begin(), tier_of_one_.end(), 0);
  for (const RankView& view : run.machine.views)
    for (std::size_t t = 0; t < view.tier.size(); ++t) tier_of_one_[view.tier[t]] = static_cast<int>(t);
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

void RouteBytes::add_move(const MoveRecord& move) {
  const Machine& machine = run_.machine.one;
  const int from = tier_of_one_[move.from], to = tier_of_one_[move.to];
  if (from == to) return;
  if (machine.route(from, to, false)) return add(from, to, false, move.bytes);
  for (std::size_t middle = 0; middle < machine.tiers.size(); ++middle) {
    const int between = static_cast<int>(middle);
    if (!machine.route(from, between, false) || !machine.route(between, to, false)) continue;
    add(from, between, false, move.bytes);
    return add(between, to, false, move.bytes);
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
