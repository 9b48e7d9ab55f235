#include "policies/planners/held_at_peak.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "policies/trace/described.h"
#include "policies/trace/live_profile.h"
#include "sim/human_text.h"
#include "sim/trace/kind_words.h"

namespace memwall {
namespace {

// The op on the device for which the memory was asked at the peak, or that runs next.
OpId device_op_from(const Trace& trace, OpId peak) {
  for (OpId id = peak; id < trace.ops.size(); ++id)
    if (runs_on_device(trace.ops[id].kind)) return id;
  return kNoOp;
}

std::string place_of(const Trace& trace, OpId peak) {
  if (peak == kNoOp) return "before the first op";
  const OpId id = device_op_from(trace, peak);
  if (id == kNoOp) return "at the end";
  const Op& op = trace.ops[id];
  std::string text = op.phase == Phase::unknown ? "" : "in " + std::string(to_string(op.phase)) + " ";
  text += "(" + described_op(trace, id);
  if (op.module != 0) text += " of " + trace.strings[op.module];
  return text + ")";
}

// By kind, on the device right after the op; kNoOp: before all.
std::vector<std::pair<Bytes, StorageKind>> kinds_at(const Trace& trace, OpId peak) {
  std::array<Bytes, kStorageKinds> bytes{};
  const auto count = [&](StorageId id, int sign) {
    const Storage& s = trace.storages[id];
    if (trace.places[s.place] == "hbm") bytes[static_cast<std::size_t>(s.kind)] += sign * s.bytes;
  };
  for (StorageId id = 0; id < trace.storages.size(); ++id)
    if (trace.storages[id].preexisting) count(id, 1);
  for (OpId id = 0; peak != kNoOp && id <= peak; ++id) {
    const Op& op = trace.ops[id];
    if (op.kind == OpKind::alloc) count(op.target, 1);
    if (op.kind == OpKind::free) count(op.target, -1);
  }
  std::vector<std::pair<Bytes, StorageKind>> kinds;
  for (int kind = 0; kind < kStorageKinds; ++kind)
    if (const Bytes held = bytes[static_cast<std::size_t>(kind)]; held > 0)
      kinds.emplace_back(held, static_cast<StorageKind>(kind));
  std::stable_sort(kinds.begin(), kinds.end(), [](const auto& x, const auto& y) { return x.first > y.first; });
  if (kinds.size() > 3) kinds.resize(3);
  return kinds;
}

}  // namespace

std::string held_at_peak(const Trace& planned) {
  const OpId peak = LiveProfile(planned).peak_op();
  const std::vector<std::pair<Bytes, StorageKind>> kinds = kinds_at(planned, peak);
  std::string text = "at the peak, " + place_of(planned, peak) + ", ";
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (i > 0) text += i + 1 == kinds.size() ? " and " : ", ";
    text += std::string(plural(kinds[i].second)) + (i == 0 ? " take " : " ") + human_bytes(kinds[i].first);
  }
  return text;
}

}  // namespace memwall
