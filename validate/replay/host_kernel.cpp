#include "validate/replay/host_kernel.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "validate/replay/vector_clones.h"

namespace memwall {
namespace {

// A piece of a loop takes about as long as one of these: some 10 to 100 us.
constexpr Bytes kPieceBytes = KiB(256);
constexpr double kPieceFlops = 4e6;

// Independent chains of multiply-adds, so that one need not wait for another: as many as registers of 8 floats hold
// beside the constants.
constexpr int kChains = 96;
constexpr double kFlopsPerRound = 2.0 * kChains;

}  // namespace

MEMWALL_VECTOR_CLONES float multiply_add_rounds(std::uint64_t rounds, float factor) {
  float chain[kChains];
  for (int i = 0; i < kChains; ++i) chain[i] = static_cast<float>(i);
  for (std::uint64_t round = 0; round < rounds; ++round)
    for (int i = 0; i < kChains; ++i) chain[i] = chain[i] * factor + 1.0f;
  float sum = 0;
  for (int i = 0; i < kChains; ++i) sum += chain[i];
  return sum;
}

MEMWALL_VECTOR_CLONES std::uint64_t sum_of_words(const std::uint64_t* words, std::uint64_t count) {
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < count; ++i) sum += words[i];
  return sum;
}

namespace {

// Calls visit(offset, bytes) for the next `bytes` of an area of `size`, round and round, from `at` on.
template <typename Visit>
void advance(Bytes& at, Bytes size, Bytes bytes, const Visit& visit) {
  while (bytes > 0) {
    const Bytes part = std::min(bytes, size - at);
    visit(at, part);
    bytes -= part;
    at = (at + part + 63) / 64 * 64 % size;  // by cache lines
  }
}

// Share of `total` that piece number `piece` of `pieces` has, exactly dividing it up.
Bytes share_of(Bytes total, std::uint64_t piece, std::uint64_t pieces) {
  const auto before = [&](std::uint64_t n) {
    const double share = static_cast<double>(total) / static_cast<double>(pieces) * static_cast<double>(n);
    return n == pieces ? total : static_cast<Bytes>(share) / 64 * 64;
  };
  return before(piece + 1) - before(piece);
}

}  // namespace

void read_memory(const std::byte* data, Bytes bytes) {
  const std::uint64_t sum =
      sum_of_words(reinterpret_cast<const std::uint64_t*>(data), static_cast<std::uint64_t>(bytes) / 8);
  __asm__ volatile("" : : "r"(sum));  // the result is wanted: the loop cannot be left out
}

void write_memory(std::byte* data, Bytes bytes) { std::memset(data, 0x5a, static_cast<std::size_t>(bytes)); }

Bytes ScratchMemory::bytes_for(Bytes device_capacity) {
  return std::clamp(device_capacity / 4 / MiB(2) * MiB(2), MiB(4), MiB(256));
}

void ScratchMemory::reserve(std::size_t lanes) {
  const std::lock_guard lock(mutex_);
  while (idle_.size() < lanes) idle_.push_back(new_lane());
}

std::unique_ptr<ScratchMemory::Lane> ScratchMemory::lend() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto lane = std::move(idle_.back());
      idle_.pop_back();
      return lane;
    }
  }
  return new_lane();
}

void ScratchMemory::take_back(std::unique_ptr<Lane> lane) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(lane));
}

double read_share(OperatorClass operator_class) {
  switch (operator_class) {
    case OperatorClass::reduction:
      return 1;
    case OperatorClass::memory:
      return 1.0 / 2;
    case OperatorClass::optimizer:
      return kHostWorkReadShare;
    default:
      return 2.0 / 3;  // two inputs, one output
  }
}

HostLoop loop_of(const KernelWork& work) {
  const auto read = static_cast<Bytes>(static_cast<double>(work.bytes) * read_share(work.operator_class));
  return {work.flops, read, work.bytes - read};
}

HostLoop loop_of_host_work(Bytes dram_bytes) {
  const auto read = static_cast<Bytes>(static_cast<double>(dram_bytes) * kHostWorkReadShare);
  return {0, read, dram_bytes - read};
}

void run_loop(const HostLoop& loop, ScratchMemory& scratch, CoreGate& gate) {
  auto lane = scratch.lend();
  const double by_bytes = static_cast<double>(loop.read + loop.write) / static_cast<double>(kPieceBytes);
  const auto pieces = static_cast<std::uint64_t>(std::max({1.0, by_bytes, loop.flops / kPieceFlops}));
  const double rounds_per_piece = loop.flops / kFlopsPerRound / static_cast<double>(pieces);
  std::uint64_t rounds_done = 0;
  for (std::uint64_t piece = 0; piece < pieces; ++piece) {
    const CoreGate::Pass pass(gate);
    advance(lane->read_at, scratch.readable().bytes(), share_of(loop.read, piece, pieces),
            [&](Bytes at, Bytes bytes) { read_memory(scratch.readable().data() + at, bytes); });
    advance(lane->write_at, lane->writable.bytes(), share_of(loop.write, piece, pieces),
            [&](Bytes at, Bytes bytes) { write_memory(lane->writable.data() + at, bytes); });
    const auto due = static_cast<std::uint64_t>(std::llround(rounds_per_piece * static_cast<double>(piece + 1)));
    const float result = multiply_add_rounds(due - rounds_done, 0.5f);
    __asm__ volatile("" : : "g"(result));
    rounds_done = due;
  }
  scratch.take_back(std::move(lane));
}

}  // namespace memwall
