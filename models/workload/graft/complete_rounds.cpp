#include "models/workload/graft/complete_rounds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "models/workload/graft/line_pairs.h"
#include "models/workload/graft/operator_key.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/trace/repeat.h"

namespace memwall {
namespace {

// Rounds of so many ops in all, and so many times the profile's, are tried: more are no part of it, and would fill the
// memory.
constexpr double kMostOps = 1e6, kMostTimes = 8;

// How often each operator runs on the device.
std::map<std::string, std::uint64_t> counts(const Trace& trace) {
  std::map<std::string, std::uint64_t> all;
  for (const Op& op : trace.ops)
    if (is_device_line(op.kind)) ++all[operator_key(trace.strings[operator_or_name(op)])];
  return all;
}

// How often one complete step stands in a window whose steps nobody marked: as often as the operator does that occurs
// least more often in it. A call of several kernels counts several times, so that others tell.
std::uint32_t rounds_in_window(const Trace& measured, const Trace& complete) {
  const std::map<std::string, std::uint64_t> ours = counts(measured), theirs = counts(complete);
  double least = 0;
  for (const auto& [key, count] : theirs)
    if (const auto found = ours.find(key); found != ours.end()) {
      const double ratio = static_cast<double>(found->second) / static_cast<double>(count);
      least = least == 0 ? ratio : std::min(least, ratio);
    }
  return static_cast<std::uint32_t>(std::clamp(std::round(least), 1.0, 1e6));
}

// A round that leaves more behind than it finds would pile it up: what no round takes over ends with its round.
Trace closed_round(Trace step) {
  if (step.ops.empty()) return step;
  std::vector<bool> made(step.storages.size(), false), freed(step.storages.size(), false);
  for (const Op& op : step.ops) {
    if (op.kind == OpKind::alloc) made[op.target] = true;
    if (op.kind == OpKind::free) freed[op.target] = true;
  }
  std::multiset<Bytes> found;  // of before, and given back in the round: what one before has left takes their places
  for (StorageId s = 0; s < step.storages.size(); ++s)
    if (step.storages[s].preexisting && freed[s]) found.insert(step.storages[s].bytes);
  const Op last = step.ops.back();
  for (StorageId s = 0; s < step.storages.size(); ++s) {
    if (!made[s] || freed[s]) continue;
    if (const auto successor = found.find(step.storages[s].bytes); successor != found.end()) {
      found.erase(successor);
      continue;
    }
    Op free;
    free.kind = OpKind::free;
    free.target = s;
    free.thread = last.thread;
    free.phase = last.phase;
    free.stream = step.storages[s].stream;
    free.first_use = static_cast<std::uint32_t>(step.uses.size());
    step.ops.push_back(free);
  }
  if (!step.steps.empty()) step.steps.back().last = static_cast<OpId>(step.ops.size());
  return step;
}

}  // namespace

std::uint32_t rounds_of(const Trace& measured, const Trace& complete) {
  if (complete.steps.size() > 1) return 1;
  const std::uint32_t times = measured.steps.size() > 1 ? static_cast<std::uint32_t>(measured.steps.size())
                                                        : rounds_in_window(measured, complete);
  if (times > 1 && static_cast<double>(times) * static_cast<double>(complete.ops.size()) >
                       kMostOps + kMostTimes * static_cast<double>(measured.ops.size()))
    throw UsageError(fmt::format("{}: its {} would stand {} times in {}, which has {}; it is another network.",
                                 complete.name, counted_text(complete.ops.size(), "op"), times, measured.name,
                                 counted_text(measured.ops.size(), "op")));
  return times;
}

Trace rounds(const Trace& complete, std::uint32_t times) { return repeated(closed_round(complete), times); }

}  // namespace memwall
