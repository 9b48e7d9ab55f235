// How long does an allocation and its free take, by the pattern of sizes? And a call of a real recording?
#include <benchmark/benchmark.h>

#include <random>
#include <unordered_map>

#include "sim/memory/pytorch_allocator.h"
#include "tests/support/snapshots.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

constexpr Bytes kUnlimited = Bytes{1} << 50;

// The same size again and again: no split, no join.
void hit(benchmark::State& state, const char* name) {
  const auto allocator = make_allocator(name, kUnlimited);
  std::vector<Address> held;
  for (int i = 0; i < 200; ++i) held.push_back(*allocator->allocate(MiB(12), 0));
  for (auto _ : state) {
    const auto address = allocator->allocate(MiB(12), 0);
    benchmark::DoNotOptimize(address);
    allocator->free(*address);
  }
  state.SetItemsProcessed(state.iterations());
}

// A step of a network: activations of many sizes pile up, then go in reverse; some small ones come and go.
void step(benchmark::State& state, const char* name) {
  const auto allocator = make_allocator(name, kUnlimited);
  std::mt19937_64 random(1);
  std::vector<Bytes> sizes;
  for (int i = 0; i < 1000; ++i)
    sizes.push_back(Bytes{1} << (random() % 17 + 9) | static_cast<Bytes>(random() % 3 * 512));
  std::vector<Address> held;
  for (auto _ : state) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      held.push_back(*allocator->allocate(sizes[i], 0));
      const Address workspace = *allocator->allocate(sizes[sizes.size() - 1 - i], 0);
      allocator->free(workspace);
    }
    while (!held.empty()) {
      allocator->free(held.back());
      held.pop_back();
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(sizes.size()) * 2);
}

// No order at all: `live` blocks of random sizes, one replaced at a time.
void shuffle(benchmark::State& state, const char* name) {
  const auto allocator = make_allocator(name, kUnlimited);
  std::mt19937_64 random(1);
  std::vector<Address> live(static_cast<std::size_t>(state.range(0)));
  const auto size = [&] { return static_cast<Bytes>(random() % (Bytes{512} << (random() % 16))) + 1; };
  for (Address& address : live) address = *allocator->allocate(size(), 0);
  for (auto _ : state) {
    Address& address = live[random() % live.size()];
    allocator->free(address);
    address = *allocator->allocate(size(), 0);
  }
  state.SetItemsProcessed(state.iterations());
}

// A recording's mallocs and frees, as positions in a table of addresses.
struct RecordedCall {
  std::uint32_t slot = 0;
  Bytes bytes = 0;  // 0 = free
  std::uint16_t stream = 0;
};
struct RecordedCalls {
  StartState start;
  std::vector<Address> live;  // by slot, at the start
  std::vector<RecordedCall> calls;
};

RecordedCalls calls_of(const MemoryRecording& recording, const DeviceRecording& device) {
  RecordedCalls recorded;
  recorded.start = find_start_state(device, recording.settings);
  std::unordered_map<Address, std::uint32_t> slots;
  for (const SegmentState& segment : recorded.start.segments) {
    for (const BlockState& block : segment.blocks) {
      if (block.use != BlockState::Use::in_use) continue;
      slots.emplace(block.address, static_cast<std::uint32_t>(recorded.live.size()));
      recorded.live.push_back(block.address);
    }
  }
  for (const MemoryEvent& event : device.events) {
    if (event.action == MemoryEvent::Action::alloc) {
      slots[event.address] = static_cast<std::uint32_t>(recorded.live.size());
      recorded.calls.push_back({slots[event.address], event.size, event.stream});
      recorded.live.push_back(0);
    } else if (const auto slot = slots.find(event.address);
               event.action == MemoryEvent::Action::free_requested && slot != slots.end()) {
      recorded.calls.push_back({slot->second, 0, event.stream});
      slots.erase(slot);
    }
  }
  return recorded;
}

// The calls of a snapshot from its start state on, again and again: default settings where the recording has them.
void snapshot(benchmark::State& state, const char* name) {
  const auto recording = shared_snapshot(name);
  if (!recording) return state.SkipWithError("the captures are absent (MEMWALL_SHARED)");
  const RecordedCalls recorded = calls_of(*recording, recording->devices.at(0));
  for (auto _ : state) {
    state.PauseTiming();
    std::vector<Address> addresses = recorded.live;
    PytorchAllocator allocator(kUnlimited, nullptr, recording->settings);
    allocator.restore(recorded.start.segments);
    state.ResumeTiming();
    for (const RecordedCall& call : recorded.calls) {
      if (call.bytes > 0)
        addresses[call.slot] = *allocator.allocate(call.bytes, call.stream);
      else
        allocator.free(addresses[call.slot]);
    }
    benchmark::DoNotOptimize(allocator.usage().reserved);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(recorded.calls.size()));
}

BENCHMARK_CAPTURE(snapshot, small_from_empty, kFromEmpty);
BENCHMARK_CAPTURE(snapshot, medium_128, kMedium128);
BENCHMARK_CAPTURE(snapshot, medium_256, kMedium256);
BENCHMARK_CAPTURE(snapshot, xl_expandable, kExpandable);
BENCHMARK_CAPTURE(hit, pytorch, "pytorch");
BENCHMARK_CAPTURE(hit, ideal, "ideal");
BENCHMARK_CAPTURE(step, pytorch, "pytorch");
BENCHMARK_CAPTURE(step, ideal, "ideal");
BENCHMARK_CAPTURE(shuffle, pytorch, "pytorch")->Arg(100)->Arg(10'000);

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
