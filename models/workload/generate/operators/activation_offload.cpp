#include "models/workload/generate/operators/activation_offload.h"

#include <utility>

namespace memwall {
namespace {

constexpr Bytes kLeast = 1024;
constexpr std::size_t kHeld = 5;
constexpr std::uint16_t kComputeStream = 0;

}  // namespace

struct OffloadedTensor : PackedTensor {
  Tensor unpack(Tape& tape) override {
    if (device->storage) return *device;  // still held: no copy
    return offload->bring_back(tape, host, like);
  }
  ActivationOffload* offload = nullptr;
  std::shared_ptr<Tensor> device;  // emptied when it is dropped from the device
  Tensor host, like;
};

ActivationOffload::ActivationOffload(Tape& tape) : stream_(tape.builder().add_stream("offload", StreamRole::copy)) {
  tape.trace().place("host");
  tape.backward_ended.push_back([this, &tape] {
    while (!held_.empty()) drop_oldest(tape);
    returned_before_.clear();
    returned_.clear();
    node_ = nullptr;
  });
}

std::uint32_t ActivationOffload::record(Tape& tape, std::uint16_t stream) {
  Op op;
  op.kind = OpKind::event_record;
  op.stream = stream;
  op.target = tape.builder().add_event();
  tape.append(op, "", {}, {});
  return op.target;
}

void ActivationOffload::wait(Tape& tape, std::uint32_t event, std::uint16_t stream) {
  Op op;
  op.kind = OpKind::event_wait;
  op.stream = stream;
  op.target = event;
  tape.append(op, "", {}, {});
}

void ActivationOffload::copy(Tape& tape, const Tensor& from, const Tensor& to) {
  Op op;
  op.kind = OpKind::copy;
  op.stream = stream_;
  op.bytes = from.bytes();
  op.data_type = from.type;
  op.from = tape.trace().storages[from.storage->id()].place;
  op.to = tape.trace().storages[to.storage->id()].place;
  const Tensor *reads[] = {&from}, *writes[] = {&to};
  tape.append(op, "aten::_to_copy", reads, writes);
}

void ActivationOffload::drop_oldest(Tape& tape) {
  const Held oldest = std::move(held_.front());
  held_.pop_front();
  wait(tape, oldest.event, kComputeStream);
  oldest.tensor->reset();
}

std::unique_ptr<PackedTensor> ActivationOffload::pack(Tape& tape, const Tensor& tensor) {
  if (tensor.storage->permanent() || tensor.bytes() < kLeast) return nullptr;
  wait(tape, record(tape, kComputeStream), stream_);
  auto packed = std::make_unique<OffloadedTensor>();
  packed->offload = this;
  packed->host = tape.make_at("host", stream_, "offloaded", tensor.shape, tensor.type);
  copy(tape, tensor, packed->host);
  packed->device = std::make_shared<Tensor>(tensor.detached());
  packed->like = tensor.detached();
  packed->like.storage.reset();
  held_.push_back({packed->device, record(tape, stream_)});
  if (held_.size() > kHeld) drop_oldest(tape);
  return packed;
}

Tensor ActivationOffload::bring_back(Tape& tape, const Tensor& host, Tensor like) {
  if (tape.running != node_) {
    node_ = tape.running;
    while (!held_.empty()) drop_oldest(tape);
    if (!returned_before_.empty()) wait(tape, record(tape, kComputeStream), stream_);
    returned_before_ = std::exchange(returned_, {});
  }
  Tensor back = tape.make_at("hbm", stream_, "aten::_to_copy", like.shape, like.type, strides_like(like.shape, like));
  copy(tape, host, back);
  wait(tape, record(tape, stream_), kComputeStream);
  returned_.push_back(back);
  return back;
}

}  // namespace memwall
