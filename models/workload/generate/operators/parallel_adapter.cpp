#include "models/workload/generate/operators/parallel_adapter.h"

namespace memwall {
namespace {

Shape widened(Shape shape, std::int64_t ranks) {
  shape.back() *= ranks;
  return shape;
}
Shape narrowed(Shape shape, std::int64_t ranks) {
  shape.back() /= ranks;
  return shape;
}

// A kernel that reads and writes as many bytes as `y` has.
void copy_part(Tape& tape, std::string_view name, const Tensor& x, const Tensor& y) {
  TapeKernel work;
  work.name = name;
  work.operator_class = OperatorClass::memory;
  work.type = y.type;
  work.shape = {y.elements()};
  work.bytes = 2 * y.bytes();
  tape.kernel(work, {&x}, {&y});
}

// Gathered along the last dimension: one piece behind the other, then put side by side (torch.cat).
Tensor gathered_by_width(Tape& tape, TensorParallel& parallel, const Tensor& x) {
  const Tensor pieces = tape.make("c10d::_allgather_base_", widened(x.shape, parallel.group.ranks()), x.type);
  parallel.group.start_all_gather(x, pieces);
  parallel.group.wait();
  Tensor whole = tape.make("aten::cat", pieces.shape, x.type);
  copy_part(tape, "aten::cat", pieces, whole);
  return whole;
}

Tensor part_by_width(Tape& tape, TensorParallel& parallel, const Tensor& x) {
  Tensor part = tape.make("aten::clone", narrowed(x.shape, parallel.group.ranks()), x.type);
  copy_part(tape, "aten::clone", x, part);
  return part;
}

}  // namespace

Tensor gathered_features(Tape& tape, TensorParallel& parallel, const Tensor& x) {
  if (parallel.group.ranks() == 1) return x;
  auto f = tape.record({&x}, {}, [&parallel](Tape& t, GradientFunction&, Tensors& g) {
    return Tensors{part_by_width(t, parallel, g[0])};
  });
  Tensor y = gathered_by_width(tape, parallel, x);
  Tape::result(f, y);
  return y;
}

Tensor summed_features(Tape& tape, TensorParallel& parallel, const Tensor& x) {
  if (parallel.group.ranks() == 1) return x;
  auto f = tape.record({&x}, {}, [](Tape&, GradientFunction&, Tensors& g) { return Tensors{g[0]}; });
  Tensor y = x.detached();
  parallel.group.all_reduce(y);
  Tape::result(f, y);
  return y;
}

Tensor copied_features(Tape& tape, TensorParallel& parallel, const Tensor& x) {
  if (parallel.group.ranks() == 1) return x;
  auto f = tape.record({&x}, {}, [&parallel](Tape&, GradientFunction&, Tensors& g) {
    parallel.group.all_reduce(g[0]);
    return Tensors{g[0]};
  });
  Tensor y = x.detached();
  Tape::result(f, y);
  return y;
}

Tensor features_of_tokens(Tape& tape, TensorParallel& parallel, const Tensor& x) {
  if (parallel.group.ranks() == 1) return x;
  auto f = tape.record({&x}, {}, [&parallel](Tape& t, GradientFunction&, Tensors& g) {
    const Tensor given = contiguous(t, g[0]);
    const Tensor whole = parallel.by_tokens() ? parallel.group.all_gather(given) : given;
    return Tensors{part_by_width(t, parallel, whole)};
  });
  Tensor y = gathered_by_width(tape, parallel, x);
  if (parallel.by_tokens()) {
    const Tensor whole = y;
    y = tape.make("aten::clone", parallel.group.scattered(whole.shape), whole.type);
    copy_part(tape, "aten::clone", whole, y);
  }
  Tape::result(f, y);
  return y;
}

}  // namespace memwall
