// How long does an allocation and its free take, by the pattern of sizes?
#include <benchmark/benchmark.h>

#include <random>

#include "sim/allocator.h"

namespace memwall {
namespace {

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

BENCHMARK_CAPTURE(hit, pytorch, "pytorch");
BENCHMARK_CAPTURE(hit, ideal, "ideal");
BENCHMARK_CAPTURE(step, pytorch, "pytorch");
BENCHMARK_CAPTURE(step, ideal, "ideal");
BENCHMARK_CAPTURE(shuffle, pytorch, "pytorch")->Arg(100)->Arg(10'000);

}  // namespace
}  // namespace memwall
