// How long does planning an arena take, and how much larger than the lower bound does it become?
#include <benchmark/benchmark.h>

#include <cmath>
#include <random>

#include "sim/memory/arena_plan.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Bytes some_size(std::mt19937_64& random) {
  return static_cast<Bytes>(std::exp2(9 + static_cast<double>(random() % 1500) / 100));
}

// A training step: parameters for ever, activations until their backward, workspaces for moments.
std::vector<Lifetime> training_step(std::size_t count) {
  std::mt19937_64 random(1);
  std::vector<Lifetime> lifetimes;
  std::vector<std::size_t> activations;
  const std::size_t parameters = count / 20, layers = (count - parameters) / 5;
  std::uint64_t now = 0;
  for (std::size_t i = 0; i < parameters; ++i) lifetimes.push_back({0, 20 * count, some_size(random)});
  for (std::size_t i = 0; i < layers; ++i) {
    activations.push_back(lifetimes.size());
    lifetimes.push_back({++now, 0, some_size(random)});
    lifetimes.push_back({now, now + 1 + random() % 3, some_size(random)});
    lifetimes.push_back({now, now + 1 + random() % 20, some_size(random)});
  }
  for (std::size_t i = layers; i-- > 0;) {
    lifetimes.push_back({++now, now + 1, some_size(random)});
    lifetimes.push_back({now, now + 1 + random() % 10, some_size(random)});
    lifetimes[activations[i]].end = now + 1 + random() % 30;
  }
  return lifetimes;
}

// No structure at all: lives of up to `longest` instants anywhere.
std::vector<Lifetime> anywhere(std::size_t count, std::uint64_t longest) {
  std::mt19937_64 random(2);
  std::vector<Lifetime> lifetimes;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t begin = random() % count;
    lifetimes.push_back({begin, begin + 1 + random() % longest, some_size(random)});
  }
  return lifetimes;
}

void plan(benchmark::State& state, const std::vector<Lifetime>& lifetimes) {
  ArenaPlan result;
  for (auto _ : state) benchmark::DoNotOptimize(result = plan_arena(lifetimes));
  state.counters["size/lower_bound"] = static_cast<double>(result.size) / static_cast<double>(result.lower_bound);
}

void arena_step(benchmark::State& state) { plan(state, training_step(static_cast<std::size_t>(state.range(0)))); }
void arena_short(benchmark::State& state) { plan(state, anywhere(static_cast<std::size_t>(state.range(0)), 100)); }
void arena_long(benchmark::State& state) {
  plan(state, anywhere(static_cast<std::size_t>(state.range(0)), static_cast<std::uint64_t>(state.range(0))));
}

BENCHMARK(arena_step)->Arg(1'000)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(arena_short)->Arg(1'000)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);
BENCHMARK(arena_long)->Arg(1'000)->Arg(10'000)->Arg(100'000)->Unit(benchmark::kMillisecond);

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
