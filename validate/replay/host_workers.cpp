#include "validate/replay/host_workers.h"

#include <algorithm>
#include <memory>
#include <utility>

#ifdef __SSE__
#include <xmmintrin.h>
#endif

#include "validate/replay/host_computer.h"
#include "validate/replay/mapped_memory.h"
#include "validate/replay/vector_clones.h"

namespace memwall {

// Not in the unnamed namespace: what is chosen at start needs a name. Adam without its square root, which would
// keep the loop from being vectorised and does not change what moves.
MEMWALL_VECTOR_CLONES void update_parameters(float* parameter, float* mean, float* variance, const float* gradient,
                                             std::size_t count) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) {
    const float g = gradient[i];
    const float m = 0.9f * mean[i] + 0.1f * g, v = 0.999f * variance[i] + 0.001f * g * g;
    mean[i] = m;
    variance[i] = v;
    parameter[i] -= 1e-3f * m / (v + 1e-8f);
  }
}

namespace {

constexpr std::size_t kElements = 4096;  // of one step, of each array
constexpr Bytes kChunk = kElements * sizeof(float);
constexpr Bytes kElementTraffic = 7 * sizeof(float);
constexpr Bytes kScratch = GiB(1);  // of all workers together

// Chunks of the operands' memory, one after another.
class ChunkLine {
 public:
  void add(const Buffer& buffer) {
    const auto chunks = static_cast<std::uint64_t>(buffer.bytes / kChunk);
    if (chunks == 0) return;
    parts_.push_back({static_cast<std::byte*>(buffer.data), end()});
    ends_.push_back(end() + chunks);
  }
  std::uint64_t end() const { return ends_.empty() ? 0 : ends_.back(); }
  // REQUIRES: number < end().
  float* chunk(std::uint64_t number) const {
    const auto part = std::upper_bound(ends_.begin(), ends_.end(), number) - ends_.begin();
    const Part& p = parts_[static_cast<std::size_t>(part)];
    return reinterpret_cast<float*>(p.data + (number - p.begin) * static_cast<std::uint64_t>(kChunk));
  }

 private:
  struct Part {
    std::byte* data;
    std::uint64_t begin;
  };
  std::vector<Part> parts_;
  std::vector<std::uint64_t> ends_;
};

bool in_host_memory(const Buffer& buffer) {
  return buffer.place_class == PlaceClass::pinned || buffer.place_class == PlaceClass::pageable;
}

// Four arrays of one worker, for traffic that no operand takes; begins on where it ended.
class WorkerScratch {
 public:
  explicit WorkerScratch(std::size_t workers)
      : chunks_(static_cast<std::uint64_t>(
            std::clamp<Bytes>(kScratch / static_cast<Bytes>(4 * workers) / kChunk, 16, MiB(16) / kChunk))),
        memory_(static_cast<Bytes>(4 * chunks_) * kChunk) {
    std::fill_n(reinterpret_cast<float*>(memory_.data()), 4 * chunks_ * kElements, 0.01f);
  }
  float* chunk(unsigned array) const {
    return reinterpret_cast<float*>(memory_.data()) + (array * chunks_ + next_) * kElements;
  }
  void advance() { next_ = (next_ + 1) % chunks_; }

 private:
  std::uint64_t chunks_, next_ = 0;
  MappedMemory memory_;
};

// Numbers near zero would be slow, and what the operands hold is any bits.
void treat_tiny_numbers_as_zero() {
#ifdef __SSE__
  _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
}

}  // namespace

struct HostWorkers::Job {
  std::uint64_t elements = 0;
  ChunkLine read, written;

  std::uint64_t steps() const { return (elements + kElements - 1) / kElements; }
  void step(std::uint64_t number, WorkerScratch& scratch) const {
    float* arrays[3];
    for (unsigned i = 0; i < 3; ++i)
      arrays[i] = 3 * number + i < written.end() ? written.chunk(3 * number + i) : scratch.chunk(i);
    const float* gradient = number < read.end() ? read.chunk(number) : scratch.chunk(3);
    const std::uint64_t count = std::min<std::uint64_t>(kElements, elements - number * kElements);
    update_parameters(arrays[0], arrays[1], arrays[2], gradient, count);
    scratch.advance();
  }
};

HostWorkers::HostWorkers(unsigned threads) {
  const std::size_t count = threads == 0 ? allowed_cores().size() : threads;
  for (std::size_t i = 0; i < count; ++i) threads_.emplace_back([this, i] { work(i); });
}

HostWorkers::~HostWorkers() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  begun_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void HostWorkers::update(Bytes dram_bytes, std::span<const Operand> operands) {
  Job job;
  job.elements = static_cast<std::uint64_t>(std::max<Bytes>(0, dram_bytes) / kElementTraffic);
  std::vector<const void*> written;
  for (const Operand& operand : operands) {
    if (operand.made == 0 || !in_host_memory(operand.buffer)) continue;
    job.written.add(operand.buffer);
    written.push_back(operand.buffer.data);
  }
  for (const Operand& operand : operands)
    if (operand.made == 0 && operand.expected != 0 && in_host_memory(operand.buffer) &&
        std::find(written.begin(), written.end(), operand.buffer.data) == written.end())
      job.read.add(operand.buffer);

  const std::lock_guard caller(callers_);
  std::unique_lock lock(mutex_);
  job_ = &job;
  busy_ = threads_.size();
  ++round_;
  begun_.notify_all();
  ended_.wait(lock, [this] { return busy_ == 0; });
  job_ = nullptr;
  if (const std::exception_ptr failure = std::exchange(failure_, nullptr)) std::rethrow_exception(failure);
}

void HostWorkers::work(std::size_t worker) {
  treat_tiny_numbers_as_zero();
  std::unique_ptr<WorkerScratch> scratch;  // its pages are made by the thread that uses them
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    begun_.wait(lock, [&] { return ending_ || round_ != seen; });
    if (ending_) return;
    seen = round_;
    const Job& job = *job_;
    const std::size_t workers = threads_.size();
    lock.unlock();
    std::exception_ptr failure;
    try {
      if (!scratch) scratch = std::make_unique<WorkerScratch>(workers);
      const std::uint64_t steps = job.steps();
      for (std::uint64_t i = steps * worker / workers; i < steps * (worker + 1) / workers; ++i) job.step(i, *scratch);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure && !failure_) failure_ = failure;
    if (--busy_ == 0) ended_.notify_all();
  }
}

}  // namespace memwall
