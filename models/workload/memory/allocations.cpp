#include "models/workload/memory/allocations.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "models/workload/memory/allocation_kinds.h"
#include "models/workload/memory/event_phases.h"
#include "models/workload/memory/phase_intervals.h"
#include "models/workload/memory/recorded_steps.h"

namespace memwall {
namespace {

// What is alive may not add up to more: sums of anything that lives at one time then never overflow.
constexpr Bytes kMostAlive = Bytes{1} << 60;

class LifetimeReader {
 public:
  LifetimeReader(const DeviceRecording& device, const StartState& start, AllocationTable& table)
      : device_(device), start_(start), table_(table) {
    alive_.reserve(device.events.size() / 2);
    table.allocations.reserve(device.events.size() / 2);
  }

  void run() {
    begin_with_older();
    for (std::uint32_t i = 0; i < device_.events.size(); ++i) {
      const MemoryEvent& event = device_.events[i];
      if (event.action == MemoryEvent::Action::alloc) add(event, i);
      if (event.action == MemoryEvent::Action::free_requested || event.action == MemoryEvent::Action::free_completed)
        end(event.address, i);
    }
    if (replaced_ > 0)
      table_.notes.push_back(
          fmt::format("{} allocations lie where another still lived, which is taken as freed.", replaced_));
    if (refused_ > 0) table_.notes.push_back(fmt::format("{} allocations of impossible sizes are left out.", refused_));
  }

 private:
  void begin_with_older();
  void add(const MemoryEvent& event, std::uint32_t i);
  void end(Address address, std::uint32_t i);
  bool plausible(Bytes requested) const { return requested >= 0 && requested <= kMostAlive - bytes_; }

  const DeviceRecording& device_;
  const StartState& start_;
  AllocationTable& table_;
  std::unordered_map<Address, std::uint32_t> alive_;
  Bytes bytes_ = 0;
  std::uint64_t replaced_ = 0, refused_ = 0;
};

// Blocks whose free was requested before the window are not among them: they only wait for a stream.
void LifetimeReader::begin_with_older() {
  for (const SegmentState& segment : start_.segments)
    for (const BlockState& block : segment.blocks) {
      if (block.use != BlockState::Use::in_use) continue;
      if (!plausible(block.requested)) {
        ++refused_;
        continue;
      }
      Allocation a;
      a.address = block.address;
      a.requested = block.requested;
      a.stream = segment.stream;
      const auto known = std::lower_bound(start_.stacks.begin(), start_.stacks.end(), block.address,
                                          [](const auto& entry, Address address) { return entry.first < address; });
      if (known != start_.stacks.end() && known->first == block.address) a.stack = known->second;
      alive_.emplace(a.address, static_cast<std::uint32_t>(table_.allocations.size()));
      bytes_ += a.requested;
      table_.allocations.push_back(a);
    }
}

void LifetimeReader::add(const MemoryEvent& event, std::uint32_t i) {
  if (alive_.count(event.address) > 0) {
    ++replaced_;
    end(event.address, i);
  }
  if (!plausible(event.size)) {
    ++refused_;
    return;
  }
  Allocation a;
  a.address = event.address;
  a.requested = event.size;
  a.begin = i;
  a.stack = event.stack;
  a.stream = event.stream;
  a.phase = table_.phases[i];
  bytes_ += a.requested;
  alive_.emplace(a.address, static_cast<std::uint32_t>(table_.allocations.size()));
  table_.allocations.push_back(a);
}

void LifetimeReader::end(Address address, std::uint32_t i) {
  const auto found = alive_.find(address);
  if (found == alive_.end()) return;  // its second half, or of a block that is not known
  Allocation& a = table_.allocations[found->second];
  a.end = i;
  bytes_ -= a.requested;
  alive_.erase(found);
}

}  // namespace

AllocationTable tabulate_allocations(const MemoryRecording& recording, const DeviceRecording& device,
                                     const StartState& start) {
  const std::vector<StackFacts> facts = read_stacks(recording);
  const EventPhases events = find_event_phases(recording, device, facts);
  const PhaseIntervals runs(events.phases);
  AllocationTable table;
  table.phases = events.phases;
  table.notes = events.notes;
  LifetimeReader(device, start, table).run();
  for (Allocation& a : table.allocations) {
    if (a.begin == Allocation::kBefore)
      a.phase = facts[a.stack].phase;
    else
      a.inference = facts[a.stack].inference;
  }
  find_kinds(table, facts, events, runs);
  table.steps = find_steps(recording, device, runs, table.notes);
  return table;
}

}  // namespace memwall
