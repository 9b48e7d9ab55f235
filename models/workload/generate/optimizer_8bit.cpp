#include "models/workload/generate/optimizer_8bit.h"

namespace memwall {
namespace {

constexpr std::int64_t kBlock = 256;      // bitsandbytes/optim/optimizer.py, since version 0.44; 2,048 before
constexpr std::int64_t kSmallest = 4096;  // min_8bit_size

}  // namespace

Tensors make_maps_8bit(Tape& tape) {
  return {tape.permanent("qmap1", {256}, DataType::fp32, StorageKind::optimizer_state),
          tape.permanent("qmap2", {256}, DataType::fp32, StorageKind::optimizer_state)};
}

void make_states_8bit(Tape& tape, Parameter& p, const Tensors& maps) {
  const bool small = p.value.elements() < kSmallest;
  const auto state = [&](const char* name, const Shape& shape, DataType type) {
    p.states.push_back(tape.permanent(p.name + "." + name, shape, type, StorageKind::optimizer_state));
  };
  state("state1", p.value.shape, small ? DataType::fp32 : DataType::int8);
  state("state2", p.value.shape, small ? DataType::fp32 : DataType::int8);
  if (small) return;
  const std::int64_t blocks = (p.value.elements() + kBlock - 1) / kBlock;
  state("absmax1", {blocks}, DataType::fp32);
  state("absmax2", {blocks}, DataType::fp32);
  for (const Tensor& map : maps) p.states.push_back(map);
}

void update_8bit(Tape& tape, Parameter& p) {
  const bool small = p.states.size() == 2;
  const Tensor value = p.value.detached();
  TapeKernel work;
  work.name = small ? "bitsandbytes::optimizer_update_32bit" : "bitsandbytes::optimizer_update_8bit_blockwise";
  work.operator_class = OperatorClass::optimizer;
  work.type = value.type;
  work.flops = 16 * static_cast<double>(value.elements());  // as AdamW; finding the nearest of 256 values not counted
  work.shape = {value.elements()};
  std::vector<const Tensor*> reads{&value, &p.gradient}, writes{&value};
  for (const Tensor& state : p.states) reads.push_back(&state);
  for (std::size_t i = 0; i < (small ? 2u : 4u); ++i) writes.push_back(&p.states[i]);
  tape.kernel(work, reads, writes);
  Op wait;
  wait.kind = OpKind::synchronize;
  wait.wait_for = WaitFor::device;
  tape.append(wait, "cudaDeviceSynchronize", {}, {});
}

}  // namespace memwall
