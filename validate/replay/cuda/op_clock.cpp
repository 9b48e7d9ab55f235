#include "validate/replay/cuda/op_clock.h"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace memwall {

using SteadyClock = std::chrono::steady_clock;

void OpClock::prepare(const Trace& schedule, const std::vector<StreamEngine>& engines) {
  slot_of_.assign(schedule.ops.size(), kNone);
  submitted_.assign(schedule.ops.size(), 0);
  spans_.assign(schedule.ops.size(), {});
  std::uint32_t slots = 0;
  for (OpId id = 0; id < schedule.ops.size(); ++id) {
    const Op& op = schedule.ops[id];
    if (runs_on_device(op.kind) && engines.at(op.stream) == StreamEngine::device) slot_of_[id] = slots++;
  }
  while (slots_.size() < slots) slots_.emplace_back();
}

void OpClock::start() {
  constexpr int kTrials = 40;
  SteadyClock::duration best = SteadyClock::duration::max();
  SteadyClock::time_point base;
  const CudaEvent* other = chosen_ == &base_ ? &trial_ : &base_;
  for (int i = 0; i < kTrials; ++i) {
    const auto before = SteadyClock::now();
    other->record(stream_.get());
    other->synchronize();
    const auto width = SteadyClock::now() - before;
    if (width >= best) continue;
    best = width;
    base = before + width / 2;
    std::swap(chosen_, other);
  }
  uncertainty_ = best / 2;
  start_ = SteadyClock::now();
  base_time_ = since_start(base);
}

OpClock::Slot& OpClock::slot(OpId id) {
  if (id >= slot_of_.size() || slot_of_[id] == kNone)
    throw std::runtime_error("op " + std::to_string(id) + " was submitted to a CUDA stream, but is no device op of " +
                             "the schedule that was prepared.");
  return slots_[slot_of_[id]];
}

void OpClock::begin(OpId id, cudaStream_t stream) { slot(id).start.record(stream); }

void OpClock::end(OpId id, cudaStream_t stream) {
  slot(id).end.record(stream);
  submitted_[id] = 1;
}

void OpClock::note(OpId id, SteadyClock::time_point start, SteadyClock::time_point end) {
  spans_.at(id) = {start, end, true};
}

void OpClock::read(std::vector<OpTimes>& times) const {
  times.resize(std::max(times.size(), slot_of_.size()));
  for (std::size_t id = 0; id < slot_of_.size(); ++id) {
    OpTimes& time = times[id];
    time.start = time.end = kNever;
    if (submitted_[id] != 0) {
      const Slot& of = slots_[slot_of_[id]];
      time.start = base_time_ + from_seconds(of.start.seconds_since(*chosen_));
      time.end = base_time_ + from_seconds(of.end.seconds_since(*chosen_));
    } else if (spans_[id].noted) {
      time.start = since_start(spans_[id].start);
      time.end = since_start(spans_[id].end);
    }
  }
}

}  // namespace memwall
