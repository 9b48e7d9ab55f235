#include "models/workload/generate/optimizer_8bit.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

namespace memwall {
namespace {

constexpr std::int64_t kBlock = 256;            // bitsandbytes/optim/optimizer.py, since version 0.44; 2,048 before
constexpr std::int64_t kSmallest = 4096;        // min_8bit_size
constexpr std::int64_t kLeastPaged = 100'000;   // get_state_buffer
constexpr std::string_view kEvictions = "evictions";
constexpr std::int64_t kWindow = 2 * (2 << 20);  // bytes: blocks of the driver's, one on its way in and one out

// In the order of Parameter::states; those of fp32 states have the first two alone.
constexpr std::size_t kMoments = 2, kWritten8bit = 4, kPaged = 7;

bool is_embedding(const Parameter& p) {
  constexpr auto kNames = std::to_array<std::string_view>({"words.weight", "positions.weight", "types.weight"});
  return std::find(kNames.begin(), kNames.end(), p.name) != kNames.end();
}

bool is_paged(const Parameter& p) { return p.states.size() == kPaged; }

void move(Tape& tape, std::uint16_t stream, const Tensor& from, const Tensor& to, Bytes bytes) {
  Op op;
  op.kind = OpKind::copy;
  op.stream = stream;
  op.bytes = bytes;
  op.from = tape.trace().storages[from.storage->id()].place;
  op.to = tape.trace().storages[to.storage->id()].place;
  const Tensor *reads[] = {&from}, *writes[] = {&to};
  tape.append(op, "cudaMemPrefetchAsync", reads, writes);
}

// The stream in which pages leave.
std::uint16_t evictions_of(Tape& tape) {
  const auto& streams = tape.trace().streams;
  const auto found = std::find_if(streams.begin(), streams.end(),
                                  [](const Stream& stream) { return stream.name == kEvictions; });
  return static_cast<std::uint16_t>(found - streams.begin());
}

// What an update has written leaves beside the prefetches of the next one: the driver evicts on its own.
void evict(Tape& tape, const Parameter& p) {
  const std::uint16_t stream = evictions_of(tape);
  Op op;
  op.kind = OpKind::event_record;
  op.target = tape.builder().add_event();
  tape.append(op, "", {}, {});
  op.kind = OpKind::event_wait;
  op.stream = stream;
  tape.append(op, "", {}, {});
  for (std::size_t i = 0; i < kMoments; ++i) move(tape, stream, p.states.back(), p.states[i], p.states[i].bytes());
}

}  // namespace

Optimizer8bit make_optimizer_8bit(Tape& tape, const Recipe& recipe) {
  Optimizer8bit shared;
  for (const char* name : {"qmap1", "qmap2"})
    shared.maps.push_back(tape.permanent(name, {256}, DataType::fp32, StorageKind::optimizer_state));
  if (recipe.paged_optimizer) {
    tape.trace().place("host");
    tape.builder().add_stream(std::string(kEvictions), StreamRole::copy);
    shared.window = tape.permanent("managed_pages", {kWindow}, DataType::int8, StorageKind::workspace);
  }
  return shared;
}

void make_states_8bit(Tape& tape, const Recipe& recipe, Parameter& p, const Optimizer8bit& shared) {
  const std::int64_t elements = p.value.elements();
  const bool wide = elements < kSmallest || (recipe.embedding_states_in_fp32 && is_embedding(p));
  const bool paged = recipe.paged_optimizer && elements >= kLeastPaged && !wide;
  const auto state = [&](const char* name, const Shape& shape, DataType type, const char* place) {
    p.states.push_back(tape.permanent(p.name + "." + name, shape, type, StorageKind::optimizer_state, place));
  };
  for (const char* name : {"state1", "state2"})
    state(name, p.value.shape, wide ? DataType::fp32 : DataType::int8, paged ? "host" : "hbm");
  if (wide) return;
  const std::int64_t blocks = (elements + kBlock - 1) / kBlock;
  for (const char* name : {"absmax1", "absmax2"}) state(name, {blocks}, DataType::fp32, "hbm");
  for (const Tensor& map : shared.maps) p.states.push_back(map);
  if (paged) p.states.push_back(shared.window);
}

void update_8bit(Tape& tape, Parameter& p) {
  const bool wide = p.states.size() == kMoments, paged = is_paged(p);
  const Tensor value = p.value.detached();
  TapeKernel work;
  work.name = wide ? "bitsandbytes::optimizer_update_32bit" : "bitsandbytes::optimizer_update_8bit_blockwise";
  work.operator_class = OperatorClass::optimizer;
  work.type = value.type;
  work.flops = 16 * static_cast<double>(value.elements());  // as AdamW; finding the nearest of 256 values not counted
  work.shape = {value.elements()};
  std::vector<const Tensor*> reads{&value, &p.gradient}, writes{&value};
  for (std::size_t i = paged ? kMoments : 0; i < p.states.size(); ++i) reads.push_back(&p.states[i]);
  for (std::size_t i = paged ? kMoments : 0; i < (wide ? kMoments : kWritten8bit); ++i) writes.push_back(&p.states[i]);
  if (paged) {
    const Tensor& window = p.states.back();
    for (std::size_t i = 0; i < kMoments; ++i) move(tape, 0, p.states[i], window, p.states[i].bytes());
    writes.push_back(&window);
    work.bytes = 2 * value.bytes() + p.gradient.bytes();
    for (std::size_t i = 0; i < kWritten8bit; ++i) work.bytes += 2 * p.states[i].bytes();
  }
  tape.kernel(work, reads, writes);
  if (paged) evict(tape, p);
  Op wait;
  wait.kind = OpKind::synchronize;
  wait.wait_for = paged ? WaitFor::stream : WaitFor::device;  // of the device, but for what the driver evicts
  tape.append(wait, "cudaDeviceSynchronize", {}, {});
}

}  // namespace memwall
