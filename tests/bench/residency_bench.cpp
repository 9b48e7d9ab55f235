// Memory's history of a run of 2.5 million residencies: how long until it is there, what it takes, and what a frame
// costs.
#include <benchmark/benchmark.h>

#include <random>

#include "gui/model/residency_history.h"
#include "tests/support/test_machine.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

constexpr std::size_t kStays = 2'500'000;

// Storages that come and go like activations: most live briefly, some to the end; a part in the second tier.
std::shared_ptr<const RunSource> source() {
  static const std::shared_ptr<const RunSource> made = [] {
    auto run = std::make_shared<Run>();
    run->machine = machine_of_ranks(test_machine(), run->trace);
    std::mt19937_64 random(1);
    run->memory.assign(run->machine.tiers.size(), {});
    for (auto& points : run->memory) points.push_back({});
    const auto label = run->trace.edit().strings.intern("activation");
    for (std::size_t i = 0; i < kStays; ++i) {
      const Time begin = nanoseconds(static_cast<std::int64_t>(i) * 700);
      const Time end =
          begin + nanoseconds(1 + static_cast<std::int64_t>(random() % (random() % 50 == 0 ? 500'000'000 : 300'000)));
      Storage storage;
      storage.bytes = static_cast<Bytes>(512 << random() % 12);
      storage.kind = static_cast<StorageKind>(random() % kStorageKinds);
      storage.label = label;
      run->trace.edit().storages.push_back(storage);
      run->residency.push_back(
          {static_cast<StorageId>(i), static_cast<std::uint8_t>(random() % 8 == 0 ? 1 : 0), begin, end});
      run->result.end = std::max(run->result.end, end);
    }
    run->result.tiers.resize(run->machine.tiers.size());
    run->at_peak.resize(run->machine.tiers.size());
    run->result.links.resize(run->machine.links.size());
    run->link_rates.resize(run->machine.links.size());
    return std::shared_ptr<const RunSource>(source_of(run));
  }();
  return made;
}

const std::shared_ptr<const ResidencyHistory>& history() {
  static const auto loaded = ResidencyHistory::load(*source(), {});
  return loaded;
}

void load(benchmark::State& state) {
  const auto from = source();
  std::size_t bytes = 0;
  for (auto _ : state) bytes = ResidencyHistory::load(*from, {})->resident_bytes();
  const std::size_t columns =
      kStays * (sizeof(Residency) + sizeof(Bytes) + sizeof(StorageKind) + sizeof(StringId)) + kStays / 8;
  state.counters["bytes_per_stay_besides_columns"] =
      static_cast<double>(bytes - std::min(bytes, columns)) / static_cast<double>(kStays);
}
BENCHMARK(load)->Name("residency_history_load/2.5M_stays")->Unit(benchmark::kMillisecond);

// A frame of 1,700 pixels, over everything and over less.
void highs(benchmark::State& state) {
  const Time end = source()->outline().run.result.end;
  history();  // loaded before the clock runs
  const TimeRange range{end / 3, end / 3 + end / state.range(0) * 2 / 3};
  for (auto _ : state)
    benchmark::DoNotOptimize(history()->highs(0, state.range(0) == 1 ? TimeRange{Time{}, end} : range, 1700));
}
BENCHMARK(highs)
    ->Name("residency_history_highs/of")
    ->Arg(1)
    ->Arg(10)
    ->Arg(100)
    ->Arg(10000)
    ->Unit(benchmark::kMicrosecond);

void alive(benchmark::State& state) {
  const Time end = source()->outline().run.result.end;
  std::size_t found = 0;
  history();
  for (auto _ : state) found = history()->alive(0, end / 2).size();
  state.counters["alive"] = static_cast<double>(found);
}
BENCHMARK(alive)->Name("residency_history_alive")->Unit(benchmark::kMicrosecond);

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
