// How long does a memory snapshot take, from its events to what the replay says?
#include <benchmark/benchmark.h>

#include <map>

#include "models/workload/memory/recording_player.h"
#include "models/workload/memory/settings_search.h"
#include "tests/support/snapshots.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

// Those blocks of a snapshot that are made and freed in it, again and again.
std::optional<MemoryRecording> long_recording(std::size_t events) {
  auto recording = shared_snapshot(kMedium128);
  if (!recording) return recording;
  DeviceRecording& device = recording->devices[0];
  std::vector<bool> kept(device.events.size());
  std::map<Address, std::vector<std::size_t>> live;  // the events of a block
  for (std::size_t i = 0; i < device.events.size(); ++i) {
    const MemoryEvent& event = device.events[i];
    if (event.action == MemoryEvent::Action::alloc) live[event.address].clear();
    const auto block = live.find(event.address);
    if (block == live.end()) continue;
    block->second.push_back(i);
    if (event.action != MemoryEvent::Action::free_completed) continue;
    for (const std::size_t of_block : block->second) kept[of_block] = true;
    live.erase(block);
  }
  std::vector<MemoryEvent> round;
  for (std::size_t i = 0; i < kept.size(); ++i)
    if (kept[i]) round.push_back(device.events[i]);
  device.events.clear();
  while (device.events.size() < events) device.events.insert(device.events.end(), round.begin(), round.end());
  device.events.resize(events);
  return recording;
}

void start_state(benchmark::State& state) {
  const auto recording = long_recording(100'000);
  if (!recording) return state.SkipWithError("no captures");
  for (auto _ : state)
    benchmark::DoNotOptimize(find_start_state(recording->devices[0], recording->settings).segments.size());
}

void replay(benchmark::State& state) {
  const auto recording = long_recording(100'000);
  if (!recording) return state.SkipWithError("no captures");
  const StartState start = find_start_state(recording->devices[0], recording->settings);
  for (auto _ : state)
    benchmark::DoNotOptimize(replay_as_recorded(*recording, recording->devices[0], start).peak_reserved);
  state.SetItemsProcessed(state.iterations() * 100'000);
}

void read_and_replay(benchmark::State& state, const char* file) {
  if (!shared_snapshot(file)) return state.SkipWithError("no captures");
  for (auto _ : state) {
    const auto recording = shared_snapshot(file);
    benchmark::DoNotOptimize(replay_found(*recording, recording->devices[0]).peak_reserved);
  }
}

void search(benchmark::State& state, const char* file) {
  const auto recording = shared_snapshot(file);
  if (!recording) return state.SkipWithError("no captures");
  const StartState start = find_start_state(recording->devices[0], recording->settings);
  for (auto _ : state)
    benchmark::DoNotOptimize(
        search_settings(*recording, recording->devices[0], start, RecordingPlayer::kUnlimited).size());
}

BENCHMARK(start_state)->Unit(benchmark::kMillisecond);
BENCHMARK(replay)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(read_and_replay, lm_medium, kMedium128)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(search, lm_medium, kMedium128)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
