// Views, copies and casts.
#include <algorithm>
#include <cassert>

#include "models/workload/generate/operators/operators.h"

namespace memwall {
namespace {

std::size_t index_of(const Tensor& x, int dimension) {
  return static_cast<std::size_t>(dimension < 0 ? dimension + x.dimensions() : dimension);
}

// A copy's kernel: what it reads and writes, no FLOPs.
void move_kernel(Tape& tape, std::string_view name, std::initializer_list<const Tensor*> reads, const Tensor& to,
                 DataType type) {
  TapeKernel work;
  work.name = name;
  work.operator_class = OperatorClass::memory;
  work.type = type;
  work.shape = {to.elements()};
  tape.kernel(work, reads, {&to});
}

Tensor cat_kernel(Tape& tape, std::span<const Tensor> parts, std::size_t at) {
  Shape shape = parts.front().shape;
  shape[at] = 0;
  for (const Tensor& part : parts) shape[at] += part.shape[at];
  Tensor result = tape.make("aten::cat", shape, parts.front().type);
  std::vector<const Tensor*> reads;
  for (const Tensor& part : parts) reads.push_back(&part);
  const Tensor* writes[] = {&result};
  TapeKernel work;
  work.name = "aten::cat";
  work.operator_class = OperatorClass::memory;
  work.type = result.type;
  work.shape = {result.elements()};
  tape.kernel(work, reads, writes);
  return result;
}

Tensor narrow_view(Tape& tape, const Tensor& x, std::size_t at, std::int64_t size) {
  Shape shape = x.shape;
  shape[at] = size;
  return tape.view(x, shape, x.strides);
}

}  // namespace

Tensor transpose(Tape& tape, const Tensor& x, int a, int b) {
  auto f = tape.record({&x}, {},
                       [a, b](Tape& t, GradientFunction&, Tensors& g) { return Tensors{transpose(t, g[0], a, b)}; });
  Shape shape = x.shape, strides = x.strides;
  std::swap(shape[index_of(x, a)], shape[index_of(x, b)]);
  std::swap(strides[index_of(x, a)], strides[index_of(x, b)]);
  Tensor y = tape.view(x, shape, strides);
  Tape::result(f, y);
  return y;
}

Tensor narrow(Tape& tape, const Tensor& x, int dimension, std::int64_t first, std::int64_t size) {
  const std::size_t at = index_of(x, dimension);
  assert(first >= 0 && first + size <= x.shape[at]);
  (void)first;
  auto f = tape.record({&x}, {}, [shape = x.shape](Tape& t, GradientFunction&, Tensors& g) {
    Tensor whole = t.make("aten::slice_backward", shape, g[0].type);
    move_kernel(t, "aten::slice_backward", {&g[0]}, whole, whole.type);
    return Tensors{whole};
  });
  Tensor y = narrow_view(tape, x, at, size);
  Tape::result(f, y);
  return y;
}

Tensor select(Tape& tape, const Tensor& x, int dimension) {
  const std::size_t at = index_of(x, dimension);
  auto f = tape.record({&x}, {}, [shape = x.shape](Tape& t, GradientFunction&, Tensors& g) {
    Tensor whole = t.make("aten::select_backward", shape, g[0].type);
    move_kernel(t, "aten::select_backward", {&g[0]}, whole, whole.type);
    return Tensors{whole};
  });
  Shape shape = x.shape, strides = x.strides;
  shape.erase(shape.begin() + static_cast<std::ptrdiff_t>(at));
  strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(at));
  Tensor y = tape.view(x, shape, strides);
  Tape::result(f, y);
  return y;
}

Tensor expand(Tape& tape, const Tensor& x, const Shape& shape) {
  auto f = tape.record(
      {&x}, {}, [from = x.shape](Tape& t, GradientFunction&, Tensors& g) { return Tensors{sum_to(t, g[0], from)}; });
  Shape strides(shape.size(), 0);
  const std::size_t shift = shape.size() - x.shape.size();
  for (std::size_t i = 0; i < x.shape.size(); ++i)
    if (x.shape[i] == shape[i + shift]) strides[i + shift] = x.strides[i];
  Tensor y = tape.view(x, shape, strides);
  Tape::result(f, y);
  return y;
}

Tensor reshape(Tape& tape, const Tensor& x, const Shape& shape) {
  assert(elements_of(shape) == x.elements());
  if (shape == x.shape) return x;
  Shape strides;
  if (!view_strides(x, shape, strides)) return reshape(tape, copy_of(tape, x), shape);
  auto f = tape.record(
      {&x}, {}, [from = x.shape](Tape& t, GradientFunction&, Tensors& g) { return Tensors{reshape(t, g[0], from)}; });
  Tensor y = tape.view(x, shape, strides);
  Tape::result(f, y);
  return y;
}

Tensors split(Tape& tape, const Tensor& x, int dimension, std::span<const std::int64_t> sizes) {
  const std::size_t at = index_of(x, dimension);
  auto f = tape.record({&x}, {},
                       [at, shapes = std::vector<std::int64_t>(sizes.begin(), sizes.end()), shape = x.shape,
                        type = x.type](Tape& t, GradientFunction&, Tensors& g) {
                         for (std::size_t i = 0; i < g.size(); ++i) {
                           if (g[i]) continue;
                           Shape part = shape;
                           part[at] = shapes[i];
                           g[i] = fill(t, "aten::zeros", part, type);
                         }
                         return Tensors{cat_kernel(t, g, at)};
                       });
  Tensors parts;
  for (const std::int64_t size : sizes) {
    parts.push_back(narrow_view(tape, x, at, size));
    Tape::result(f, parts.back());
  }
  return parts;
}

Tensors chunk(Tape& tape, const Tensor& x, int dimension, int parts) {
  const std::int64_t all = x.size(dimension), each = (all + parts - 1) / parts;
  std::vector<std::int64_t> sizes;
  for (std::int64_t done = 0; done < all; done += each) sizes.push_back(std::min(each, all - done));
  return split(tape, x, dimension, sizes);
}

void kernel_into(Tape& tape, std::string_view name, OperatorClass operator_class,
                 std::initializer_list<const Tensor*> reads, const Tensor& to) {
  TapeKernel work;
  work.name = name;
  work.operator_class = operator_class;
  work.type = to.type;
  work.flops = operator_class == OperatorClass::elementwise ? static_cast<double>(to.elements()) : 0;
  work.shape = {to.elements()};
  tape.kernel(work, reads, {&to});
}

Tensor cat(Tape& tape, std::span<const Tensor> parts, int dimension) {
  const std::size_t at = index_of(parts.front(), dimension);
  std::vector<const Tensor*> inputs;
  std::vector<std::int64_t> sizes;
  for (const Tensor& part : parts) {
    inputs.push_back(&part);
    sizes.push_back(part.shape[at]);
  }
  auto f = tape.record(inputs, {}, [at, sizes](Tape& t, GradientFunction& node, Tensors& g) {
    Tensors parts_of(sizes.size());
    for (std::size_t i = 0; i < sizes.size(); ++i)
      if (node.needs(i)) parts_of[i] = narrow_view(t, g[0], at, sizes[i]);
    return parts_of;
  });
  Tensor y = cat_kernel(tape, parts, at);
  Tape::result(f, y);
  return y;
}

Tensor fill(Tape& tape, std::string_view name, const Shape& shape, DataType type) {
  Tensor y = tape.make(name, shape, type);
  move_kernel(tape, name, {}, y, type);
  return y;
}

Tensor cast(Tape& tape, const Tensor& x, DataType type) {
  if (x.type == type) return x;
  auto f = tape.record(
      {&x}, {}, [from = x.type](Tape& t, GradientFunction&, Tensors& g) { return Tensors{cast(t, g[0], from)}; });
  Tensor y = tape.make("aten::_to_copy", x.shape, type, strides_like(x.shape, x));
  const bool floating = x.type != DataType::int64;
  move_kernel(tape, "aten::_to_copy", {&x}, y, floating ? x.type : type);
  Tape::result(f, y);
  return y;
}

Tensor copy_of(Tape& tape, const Tensor& x, std::string_view name) {
  auto f = tape.record({&x}, {}, [](Tape&, GradientFunction&, Tensors& g) { return Tensors{g[0]}; });
  Tensor y = tape.make(name, x.shape, x.type);
  move_kernel(tape, name, {&x}, y, x.type);
  Tape::result(f, y);
  return y;
}

void read_on_host(Tape& tape, const Tensor& number) {
  Op copy;
  copy.kind = OpKind::copy;
  copy.wait_for = WaitFor::own_op;
  copy.bytes = number.bytes();
  copy.from = tape.trace().place("hbm");
  copy.to = tape.trace().place("host");
  copy.pageable = true;
  const Tensor* reads[] = {&number};
  tape.append(copy, "aten::_local_scalar_dense", reads, {});
}

Tensor contiguous(Tape& tape, const Tensor& x) { return x.contiguous() ? x : copy_of(tape, x); }

Tensor autocast_to(Tape& tape, const Tensor& x, DataType type) {
  if (!x || x.type == type || x.type == DataType::int64) return x;
  const bool leaf = x.function && x.function->leaf && type != DataType::fp32;
  if (!leaf) return cast(tape, x, type);
  for (const auto& [storage, kept] : tape.cast_cache)
    if (storage == x.storage->id()) return kept;
  Tensor y = cast(tape, x, type);
  tape.cast_cache.emplace_back(x.storage->id(), y);
  return y;
}

Tensor autocast_low(Tape& tape, const Tensor& x) { return tape.autocast ? autocast_to(tape, x, *tape.autocast) : x; }

Tensor autocast_fp32(Tape& tape, const Tensor& x) { return tape.autocast ? autocast_to(tape, x, DataType::fp32) : x; }

}  // namespace memwall
