#include "validate/replay/host_kernel.h"

#include <algorithm>
#include <cstring>

#include "validate/replay/vector_clones.h"

namespace memwall {
namespace {

// A piece of a loop takes about as long as one of these: some 10 to 100 us.
constexpr Bytes kPieceBytes = KiB(256);
constexpr double kPieceFlops = 4e6;

// Independent chains of multiply-adds, as many as hide the latency of the widest units: 6 of 16 floats.
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

// Goes over pieces of memory, the operands' first and once, then round and round over scratch.
class TrafficPath {
 public:
  void add(std::byte* data, Bytes bytes) { stretches_.push_back({data, bytes}); }
  void end_in(std::byte* data, Bytes bytes, Bytes at) {
    scratch_ = {data, bytes};
    at_ = at;
  }
  // Where in scratch it has arrived.
  Bytes at() const { return at_; }

  // Calls visit(data, bytes) for the next `bytes`.
  template <typename Visit>
  void advance(Bytes bytes, const Visit& visit) {
    while (bytes > 0 && next_ < stretches_.size()) {
      const Stretch& stretch = stretches_[next_];
      const Bytes part = std::min(bytes, stretch.bytes - done_);
      visit(stretch.data + done_, part);
      bytes -= part;
      done_ += part;
      if (done_ < stretch.bytes) continue;
      ++next_;
      done_ = 0;
    }
    while (bytes > 0) {
      const Bytes part = std::min(bytes, scratch_.bytes - at_);
      visit(scratch_.data + at_, part);
      bytes -= part;
      at_ = (at_ + part) % scratch_.bytes / 64 * 64;  // operands may end anywhere; scratch goes by cache lines
    }
  }

 private:
  struct Stretch {
    std::byte* data = nullptr;
    Bytes bytes = 0;
  };
  std::vector<Stretch> stretches_;
  std::size_t next_ = 0;
  Bytes done_ = 0;  // of stretches_[next_]
  Stretch scratch_;
  Bytes at_ = 0;
};

// Share of `total` that piece number `piece` of `pieces` has, exactly dividing it up.
Bytes share_of(Bytes total, std::uint64_t piece, std::uint64_t pieces) {
  const auto before = [&](std::uint64_t n) {
    return n == pieces ? total : static_cast<Bytes>(static_cast<double>(total) / pieces * n) / 64 * 64;
  };
  return before(piece + 1) - before(piece);
}

void read_part(const std::byte* data, Bytes bytes, std::uint64_t& sum) {
  sum += sum_of_words(reinterpret_cast<const std::uint64_t*>(data), static_cast<std::uint64_t>(bytes) / 8);
}

void write_part(std::byte* data, Bytes bytes) { std::memset(data, 0x5a, static_cast<std::size_t>(bytes)); }

}  // namespace

void ScratchMemory::reserve(std::size_t lanes) {
  const std::lock_guard lock(mutex_);
  while (idle_.size() < lanes) idle_.push_back(std::make_unique<Lane>(kBytes));
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
  return std::make_unique<Lane>(kBytes);
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

void run_loop(const HostLoop& loop, std::span<const Operand> operands, ScratchMemory& scratch, CoreGate& gate) {
  auto lane = scratch.lend();
  TrafficPath reads, writes;
  for (const Operand& operand : operands) {
    if (operand.buffer.place_class == PlaceClass::file) continue;
    auto* data = static_cast<std::byte*>(operand.buffer.data);
    if (operand.expected != 0) reads.add(data, operand.buffer.bytes);
    if (operand.made != 0) writes.add(data, operand.buffer.bytes);
  }
  // Nobody writes to the readable area; TrafficPath is the same for both.
  reads.end_in(const_cast<std::byte*>(scratch.readable()), ScratchMemory::kBytes, lane->read_at);
  writes.end_in(lane->writable.data(), lane->writable.bytes(), lane->write_at);

  const double by_bytes = static_cast<double>(loop.read + loop.write) / kPieceBytes;
  const auto pieces = static_cast<std::uint64_t>(std::max({1.0, by_bytes, loop.flops / kPieceFlops}));
  const double rounds = loop.flops / kFlopsPerRound;
  std::uint64_t rounds_done = 0, sum = 0;
  for (std::uint64_t piece = 0; piece < pieces; ++piece) {
    const CoreGate::Pass pass(gate);
    reads.advance(share_of(loop.read, piece, pieces),
                  [&](const std::byte* data, Bytes bytes) { read_part(data, bytes, sum); });
    writes.advance(share_of(loop.write, piece, pieces), write_part);
    const auto due = static_cast<std::uint64_t>(rounds / static_cast<double>(pieces) * static_cast<double>(piece + 1));
    sum += static_cast<std::uint64_t>(multiply_add_rounds(due - rounds_done, 0.5f));
    rounds_done = due;
  }
  lane->read_at = reads.at();
  lane->write_at = writes.at();
  __asm__ volatile("" : : "r"(sum));  // the result is wanted: no loop can be left out
  scratch.take_back(std::move(lane));
}

}  // namespace memwall
