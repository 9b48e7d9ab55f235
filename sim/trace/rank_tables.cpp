#include "sim/trace/rank_tables.h"

#include <algorithm>

namespace memwall {

std::string rank_note_prefix(std::uint32_t number) { return "Rank " + std::to_string(number) + ": "; }

bool targets_event(const Op& op) {
  return op.kind == OpKind::event_record || op.kind == OpKind::event_wait ||
         ((op.kind == OpKind::synchronize || op.kind == OpKind::host_work) && op.wait_for == WaitFor::event);
}

bool is_same(const ProcessGroup& a, const ProcessGroup& b) {
  return a.name == b.name && a.ranks == b.ranks && a.members == b.members;
}

std::vector<ProcessGroup> all_groups(const Trace& trace) {
  std::vector<ProcessGroup> groups = trace.groups;
  for (const Op& op : trace.ops)
    if (op.kind == OpKind::collective && op.group >= groups.size()) groups.resize(op.group + std::size_t{1});
  return groups;
}

void trim_unknown(std::vector<ProcessGroup>& groups) {
  while (!groups.empty() && is_same(groups.back(), ProcessGroup{})) groups.pop_back();
}

std::vector<std::uint16_t> devices_of(const Trace& trace, std::uint16_t rank) {
  std::vector<std::uint16_t> devices;
  for (const Stream& stream : trace.streams)
    if (stream.rank == rank) devices.push_back(stream.device);
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  return devices;
}

std::uint16_t device_position(const std::vector<std::uint16_t>& devices, std::uint16_t device) {
  return static_cast<std::uint16_t>(std::lower_bound(devices.begin(), devices.end(), device) - devices.begin());
}

RankDictionary::RankDictionary(const Trace& from, Trace& to)
    : from_(from),
      to_(to),
      strings_(from.strings.size(), kUnknown),
      shapes_(from.shapes.size(), kUnknown),
      places_(from.places.size(), kUnknown) {}

StringId RankDictionary::string(StringId id) {
  if (strings_[id] == kUnknown) strings_[id] = to_.strings.intern(from_.strings[id]);
  return strings_[id];
}

ShapeId RankDictionary::shape(ShapeId id) {
  if (shapes_[id] == kUnknown) shapes_[id] = to_.shapes.intern(from_.shapes[id]);
  return shapes_[id];
}

std::uint8_t RankDictionary::place(std::uint8_t id) {
  if (places_[id] == kUnknown) places_[id] = to_.place(from_.places[id]);
  return static_cast<std::uint8_t>(places_[id]);
}

void RankDictionary::translate(Op& op) {
  op.name = string(op.name);
  op.operator_name = string(op.operator_name);
  op.module = string(op.module);
  op.shape = shape(op.shape);
  // Of the others the places are not used. Host work without one has place 0, which a trace may lack.
  if (op.kind == OpKind::host_work && op.from < from_.places.size()) op.from = place(op.from);
  if (op.kind != OpKind::copy && op.kind != OpKind::storage_io) return;
  op.from = place(op.from);
  op.to = place(op.to);
}

void RankDictionary::translate(Storage& storage) {
  storage.label = string(storage.label);
  storage.shape = shape(storage.shape);
  storage.place = place(storage.place);
}

}  // namespace memwall
