#include "policies/profile/step_profile.h"

#include <algorithm>

#include "sim/engine/simulation.h"

namespace memwall {
namespace {

// kMinBlockSize of PyTorch's caching allocator (c10/cuda/CUDACachingAllocator.cpp): every block is a multiple of it.
constexpr Bytes kBlock = 512;

}  // namespace

StepProfile::StepProfile(const Trace& trace, const Machine& machine)
    : trace_(trace), machine_(machine), flow_(trace), gathers_(trace, flow_) {
  SimulationOptions options;
  options.allocator = "ideal";
  const SimulationResult result = simulate(trace, machine, options);
  step_time_ = result.end;
  starts_.resize(trace.ops.size());
  ends_.resize(trace.ops.size());
  reached_.resize(trace.ops.size());
  Time reached{-1};
  for (OpId id = 0; id < trace.ops.size(); ++id) {
    const OpRecord& record = result.records[id];
    const bool device = record.start != kNever;
    starts_[id] = device ? record.start : record.host_start;
    ends_[id] = device ? record.end : record.host_end;
    if (device) reached = std::max(reached, record.start);
    reached_[id] = reached;
  }
  held_.assign(trace.storages.size(), 0);
  for (StorageId s = 0; s < trace.storages.size(); ++s)
    if (trace.places[trace.storages[s].place] == "hbm")
      held_[s] = (trace.storages[s].bytes + kBlock - 1) / kBlock * kBlock;
  first_gap_.reserve(trace.storages.size() + 1);
  for (StorageId s = 0; s < trace.storages.size(); ++s) find_gaps(s);
  first_gap_.push_back(static_cast<std::uint32_t>(gaps_.size()));
}

void StepProfile::find_gaps(StorageId storage) {
  first_gap_.push_back(static_cast<std::uint32_t>(gaps_.size()));
  const std::span<const Touch> touches = flow_.touches(storage);
  if (held_[storage] == 0 || touches.empty()) return;
  Time used{};
  for (std::uint32_t i = 0; i < touches.size(); ++i) {
    used = std::max(used, ends_[touches[i].op]);
    Gap gap{storage, i, touches[i].op, kNoOp, used, {}, true, false};
    if (i + 1 < touches.size()) {
      gap.before = touches[i + 1].op;
      gap.end = starts_[gap.before];
      gap.needs_content = touches[i + 1].reads;
    } else if (flow_.free(storage) == kNoOp && trace_.storages[storage].preexisting) {
      gap.before = touches.front().op;
      gap.end = step_time_ + starts_[gap.before];
      gap.needs_content = touches.front().reads;
      gap.wraps = true;
    } else {
      continue;
    }
    if (gap.end > gap.begin) gaps_.push_back(gap);
  }
}

OpId StepProfile::op_at(Time time) const {
  return static_cast<OpId>(std::lower_bound(reached_.begin(), reached_.end(), time) - reached_.begin());
}

OpId StepProfile::op_running_at(Time time) const {
  const auto next = std::upper_bound(reached_.begin(), reached_.end(), time);
  return next == reached_.begin() ? 0 : op_at(*(next - 1));
}

std::span<const Gap> StepProfile::gaps(StorageId storage) const {
  return std::span(gaps_).subspan(first_gap_[storage], first_gap_[storage + 1] - first_gap_[storage]);
}

Duration StepProfile::producer_time(StorageId storage) const {
  Duration sum{};
  for (const OpId writer : flow_.writers(storage)) sum += trace_.ops[writer].duration;
  return sum;
}

}  // namespace memwall
