#include "models/workload/generate/parallel/partitioned_tensor.h"

#include "models/workload/generate/operators/operators.h"

namespace memwall {
namespace {

constexpr std::int64_t kSizes = 16;  // numbers that describe a part: dimensions, shape, parts, where each begins

std::int64_t elements_of(const Shape& shape) {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

// `Tensor.tolist()` of the sizes, which come with the part.
void read_sizes(Tape& tape, const Tensor& part) {
  Op copy;
  copy.kind = OpKind::copy;
  copy.wait_for = WaitFor::own_op;
  copy.bytes = kSizes * bytes_of(DataType::int64);
  copy.from = tape.trace().place("hbm");
  copy.to = tape.trace().place("host");
  copy.pageable = true;
  const Tensor* const reads[] = {&part};
  tape.append(copy, "aten::_to_copy", reads, {});
}

}  // namespace

Shape PartitionedTensor::part_shape(const Shape& whole) const {
  return {1, (elements_of(whole) + group_.ranks() - 1) / group_.ranks(), 1};
}

Tensor PartitionedTensor::part_of(const Tensor& whole) const {
  if (!of_deepspeed_) {
    Tensor view = whole.detached();
    view.shape = part_shape(whole.shape);
    view.strides = contiguous_strides(view.shape);
    return view;
  }
  Tensor part = tape_.make("aten::clone", part_shape(whole.shape), whole.type);
  TapeKernel work;
  work.name = "aten::clone";
  work.operator_class = OperatorClass::memory;
  work.type = part.type;
  work.shape = {part.elements()};
  work.bytes = 2 * part.bytes();
  tape_.kernel(work, {&whole}, {&part});
  return part;
}

Tensor PartitionedTensor::whole_of(const Tensor& part, const Shape& whole) const {
  const NoGradientScope scope(tape_);
  const Shape gathered = group_.gathered(part.shape);
  if (of_deepspeed_) read_sizes(tape_, part);
  Tensor flat = of_deepspeed_ ? fill(tape_, "aten::zeros", gathered, part.type)
                              : tape_.make("c10d::_allgather_base_", gathered, part.type);
  group_.start_all_gather(part, flat);
  group_.wait();
  Tensor seen = flat;
  seen.shape = whole;
  seen.strides = contiguous_strides(whole);
  return of_deepspeed_ ? copy_of(tape_, seen, "aten::clone") : seen;
}

}  // namespace memwall
