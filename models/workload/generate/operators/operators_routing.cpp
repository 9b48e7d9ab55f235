#include "models/workload/generate/operators/operators_routing.h"

#include "models/workload/generate/operators/operators.h"

namespace memwall {
namespace {

void kernel_of(Tape& tape, std::string_view name, OperatorClass kind, DataType type,
               std::initializer_list<const Tensor*> reads, std::initializer_list<const Tensor*> writes,
               Bytes bytes = -1) {
  TapeKernel work;
  work.name = name;
  work.operator_class = kind;
  work.type = type;
  work.bytes = bytes;
  if (kind == OperatorClass::memory) work.shape = {(*writes.begin())->elements()};
  tape.kernel(work, reads, writes);
}

// Zeros of `shape` in which what `indices` name becomes `g` (aten::index_put, aten::scatter).
Tensor spread(Tape& tape, std::string_view name, const Shape& shape, const Tensor& indices, const Tensor& g) {
  const Tensor zeros = fill(tape, "aten::new_zeros", shape, g.type);
  Tensor result = tape.make(name, shape, g.type);
  kernel_of(tape, name, OperatorClass::memory, g.type, {&zeros, &indices, &g}, {&result});
  return result;
}

}  // namespace

LargestOfRows topk(Tape& tape, const Tensor& x, std::int64_t count) {
  auto f = tape.record({&x}, {}, [shape = x.shape](Tape& t, GradientFunction& node, Tensors& g) {
    return Tensors{spread(t, "aten::scatter", shape, node.take_saved(t, 0), g[0])};
  });
  Shape shape = x.shape;
  shape.back() = count;
  LargestOfRows result{tape.make("aten::topk", shape, x.type), tape.make("aten::topk", shape, DataType::int64)};
  kernel_of(tape, "aten::topk", OperatorClass::other, x.type, {&x}, {&result.values, &result.indices});
  Tape::result(f, result.values);
  tape.save(f, result.indices);
  return result;
}

Tensor sum_of_rows(Tape& tape, const Tensor& x) {
  auto f = tape.record(
      {&x}, {}, [shape = x.shape](Tape& t, GradientFunction&, Tensors& g) { return Tensors{expand(t, g[0], shape)}; });
  Shape shape = x.shape;
  shape.back() = 1;
  Tensor y = sum_to(tape, x.detached(), shape);
  Tape::result(f, y);
  return y;
}

// Of the divisor: -grad * ((a / b) / b); of the dividend: grad / b.
Tensor div(Tape& tape, const Tensor& a, const Tensor& b) {
  auto f =
      tape.record({&a, &b}, {b, b.requires_gradient() ? a : Tensor()}, [](Tape& t, GradientFunction& node, Tensors& g) {
        const Tensor other = node.take_saved(t, 0), self = node.take_saved(t, 1);
        Tensors gradients(2);
        if (node.needs(1)) {
          const Tensor once = elementwise(t, "aten::div", {&self, &other}, self.shape, self.type);
          const Tensor twice = elementwise(t, "aten::div", {&once, &other}, self.shape, self.type);
          const Tensor minus = elementwise(t, "aten::neg", {&g[0]}, g[0].shape, g[0].type);
          gradients[1] = elementwise(t, "aten::mul", {&minus, &twice}, g[0].shape, g[0].type);
        }
        if (node.needs(0)) gradients[0] = elementwise(t, "aten::div", {&g[0], &other}, g[0].shape, g[0].type);
        return gradients;
      });
  Tensor y = elementwise(tape, "aten::div", {&a, &b}, broadcast(a.shape, b.shape), a.type);
  Tape::result(f, y);
  return y;
}

Tensor argsort(Tape& tape, const Tensor& x) {
  const Tensor values = tape.make("aten::sort", x.shape, x.type);
  Tensor order = tape.make("aten::sort", x.shape, DataType::int64);
  kernel_of(tape, "aten::sort", OperatorClass::other, x.type, {&x}, {&values, &order});
  return order;
}

Tensor floor_divide(Tape& tape, const Tensor& x) {
  Tensor y = tape.make("aten::floor_divide", x.shape, x.type);
  kernel_of(tape, "aten::floor_divide", OperatorClass::other, x.type, {&x}, {&y});
  return y;
}

Tensor index_rows(Tape& tape, const Tensor& x, const Tensor& rows) {
  auto f = tape.record({&x}, {rows}, [shape = x.shape](Tape& t, GradientFunction& node, Tensors& g) {
    return Tensors{spread(t, "aten::index_put", shape, node.take_saved(t, 0), g[0])};
  });
  Shape shape = x.shape;
  shape.front() = rows.elements();
  Tensor y = tape.make("aten::index", shape, x.type);
  kernel_of(tape, "aten::index", OperatorClass::memory, x.type, {&x, &rows}, {&y}, 2 * y.bytes() + rows.bytes());
  Tape::result(f, y);
  return y;
}

Tensor add_rows(Tape& tape, const Tensor& like, const Tensor& rows, const Tensor& x) {
  const Tensor zeros = fill(tape, "aten::zeros_like", like.shape, like.type);
  auto f = tape.record({&x}, {rows, x}, [](Tape& t, GradientFunction& node, Tensors& g) {
    const Tensor indices = node.take_saved(t, 0), source = node.take_saved(t, 1);
    Tensor gradient = t.make("aten::index_select", source.shape, g[0].type);
    kernel_of(t, "aten::index_select", OperatorClass::memory, g[0].type, {&g[0], &indices}, {&gradient},
              2 * gradient.bytes() + indices.bytes());
    return Tensors{gradient};
  });
  Tensor y = tape.make("aten::index_add", like.shape, like.type);
  kernel_of(tape, "aten::index_add", OperatorClass::memory, like.type, {&zeros, &rows, &x}, {&y});
  Tape::result(f, y);
  return y;
}

}  // namespace memwall
