#include "models/workload/import/timed/work_shape.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <string_view>

#include "models/workload/import/timed/name_text.h"
#include "sim/trace/attention_kernel.h"

namespace memwall {
namespace {

using std::string_view;
using Tensors = std::vector<CapturedTensor>;

std::int64_t product(const Shape& shape, std::size_t from) {
  return elements_of(std::span(shape).subspan(std::min(from, shape.size())));
}

std::int64_t elements(const CapturedTensor& t) { return elements_of(t.shape); }

// A line may list more than 64 bits can count.
std::int64_t sum(std::int64_t a, std::int64_t b) { return std::min(a + b, std::int64_t{1} << 60); }

const CapturedTensor* at(const Tensors& tensors, std::size_t i) { return i < tensors.size() ? &tensors[i] : nullptr; }

const CapturedTensor* of_rank(const Tensors& tensors, std::size_t i, std::size_t rank) {
  const CapturedTensor* t = at(tensors, i);
  return t != nullptr && t->shape.size() == rank ? t : nullptr;
}

// --- products

// m x k with k x n, both of the same batch; {} if they do not fit.
Shape matrix_product(const CapturedTensor* a, const CapturedTensor* b) {
  if (a == nullptr || b == nullptr || a->shape.size() != b->shape.size()) return {};
  const Shape &x = a->shape, &y = b->shape;
  if (x.size() == 2 && x[1] == y[0]) return {1, x[0], y[1], x[1]};
  if (x.size() == 3 && x[0] == y[0] && x[2] == y[1]) return {x[0], x[1], y[2], x[2]};
  return {};
}

// Each token is multiplied with the matrix of its group. Two matrices: the groups share out what is summed
// over, and each has a result of its own.
Shape grouped_product(const OperatorCall& r) {
  const CapturedTensor *a = at(r.inputs, 0), *b = at(r.inputs, 1), *out = at(r.outputs, 0);
  if (a == nullptr || b == nullptr || out == nullptr) return {};
  const Shape &x = a->shape, &y = b->shape;
  if (x.size() == 2 && y.size() == 3 && x[1] == y[1])
    return y[0] > 0 && x[0] % y[0] == 0 ? Shape{y[0], x[0] / y[0], y[2], y[1]} : Shape{1, x[0], y[2], y[1]};
  if (x.size() == 2 && y.size() == 2 && x[1] == y[0] && out->shape.size() == 3) {
    const std::int64_t groups = out->shape[0];
    return groups > 0 && x[1] % groups == 0 ? Shape{groups, x[0], y[1], x[1] / groups} : Shape{1, x[0], y[1], x[1]};
  }
  return matrix_product(a, b);
}

// x [..., k] with w [n, k].
Shape linear_product(const CapturedTensor* x, const CapturedTensor* w) {
  if (x == nullptr || w == nullptr || x->shape.empty() || w->shape.size() != 2 || x->shape.back() != w->shape[1])
    return {};
  const std::int64_t k = x->shape.back();
  return {1, k == 0 ? 0 : elements(*x) / k, w->shape[0], k};
}

// The rules of matmul: a matrix without batch on the right takes all rows of the left at once.
Shape broadcast_product(const OperatorCall& r) {
  const CapturedTensor *a = at(r.inputs, 0), *b = at(r.inputs, 1), *out = at(r.outputs, 0);
  if (a == nullptr || b == nullptr || out == nullptr || a->shape.empty() || b->shape.empty()) return {};
  const std::int64_t k = a->shape.back(), n = b->shape.size() == 1 ? 1 : b->shape.back();
  if (b->shape.size() <= 2 && b->shape.front() == k) return {1, k == 0 ? 0 : elements(*a) / k, n, k};
  const std::int64_t m = a->shape.size() == 1 ? 1 : a->shape[a->shape.size() - 2];
  if (b->shape.size() < 2 || b->shape[b->shape.size() - 2] != k || m == 0 || n == 0) return {};
  return {elements(*out) / m / n, m, n, k};
}

Shape gemm_shape(const OperatorCall& r, string_view name) {
  const Tensors& in = r.inputs;
  if (contains(name, "backward")) return {};  // of linear and matmul: two products in one
  if (name == "_grouped_mm" || name == "_scaled_grouped_mm") return grouped_product(r);
  if (name == "linear") return linear_product(at(in, 0), at(in, 1));
  if (name == "matmul") return broadcast_product(r);
  if (name == "mv" || name == "addmv") {
    const CapturedTensor* matrix = of_rank(in, name == "mv" ? 0 : 1, 2);
    return matrix == nullptr ? Shape{} : Shape{1, matrix->shape[0], 1, matrix->shape[1]};
  }
  if (name == "dot" || name == "vdot") {
    const CapturedTensor* a = of_rank(in, 0, 1);
    return a == nullptr ? Shape{} : Shape{1, 1, 1, a->shape[0]};
  }
  if (name == "addr" || name == "ger" || name == "outer") {
    const std::size_t first = name == "addr" ? 1 : 0;
    const CapturedTensor *a = of_rank(in, first, 1), *b = of_rank(in, first + 1, 1);
    return a == nullptr || b == nullptr ? Shape{} : Shape{1, a->shape[0], b->shape[0], 1};
  }
  const bool adds = contains(name, "add");  // what is added comes first
  return matrix_product(at(in, adds ? 1 : 0), at(in, adds ? 2 : 1));
}

// --- convolutions

double convolution_flops(const Shape& s) {
  double flops = 2.0 / static_cast<double>(s[5]);
  for (std::size_t i = 0; i < 5; ++i) flops *= static_cast<double>(s[i]);
  return flops;
}

// `from` -> `to` by a kernel of [to's channels, from's channels / groups, taps...].
Shape convolution_between(const Shape& from, const Shape& to, const Shape& kernel) {
  if (from.size() < 3 || to.size() != from.size() || kernel.size() != from.size()) return {};
  if (kernel[0] != to[1] || kernel[1] == 0 || from[1] % kernel[1] != 0 || from[1] == 0) return {};
  return {from[0], from[1], to[1], product(to, 2), product(kernel, 2), from[1] / kernel[1]};
}

Shape convolution_shape(const OperatorCall& r, string_view name) {
  const bool backward = contains(name, "backward");
  const CapturedTensor* out = backward ? at(r.inputs, 0) : at(r.outputs, 0);
  const CapturedTensor* in = at(r.inputs, backward ? 1 : 0);
  const CapturedTensor* kernel = at(r.inputs, backward ? 2 : 1);
  if (out == nullptr || in == nullptr || kernel == nullptr) return {};
  const Shape plain = convolution_between(in->shape, out->shape, kernel->shape);
  const Shape transposed = convolution_between(out->shape, in->shape, kernel->shape);
  if (plain.empty() || transposed.empty()) return plain.empty() ? transposed : plain;
  // As many channels on both sides: the FLOPs say which it is; backward has those of each gradient it makes.
  const double once = convolution_flops(plain), other = convolution_flops(transposed);
  const bool is_other = r.flops != once && r.flops != 2 * once && (r.flops == other || r.flops == 2 * other);
  return is_other ? transposed : plain;
}

// --- attention, normalization, reductions, lookups

AttentionKernel kernel_named(string_view name) {
  if (contains(name, "cudnn")) return AttentionKernel::cudnn;
  if (contains(name, "flash_attn_3") || contains(name, "flash3")) return AttentionKernel::flash_attention_3;
  if (contains(name, "flash_attn_4") || contains(name, "flash4")) return AttentionKernel::flash_attention_4;
  return contains(name, "efficient") ? AttentionKernel::memory_efficient : AttentionKernel::flash_attention_2;
}

Shape attention_shape(const OperatorCall& r, string_view name) {
  const std::size_t first = contains(name, "backward") ? 1 : 0;
  const CapturedTensor *q = of_rank(r.inputs, first, 4), *k = of_rank(r.inputs, first + 1, 4);
  if (q == nullptr || k == nullptr) return {};
  const bool heads_first = contains(name, "scaled_dot_product");
  const std::size_t heads = heads_first ? 1 : 2, length = heads_first ? 2 : 1;
  return with_attention_kernel({q->shape[0], q->shape[heads], k->shape[heads], q->shape[length], k->shape[length],
                                q->shape.back(), r.causal ? 1 : 0},
                               kernel_named(name));
}

Shape rows_of(std::int64_t all, std::int64_t rows) {
  if (rows <= 0) return {};
  return {rows, (all + rows - 1) / rows};
}

Shape normalization_shape(const OperatorCall& r, string_view name) {
  const bool backward = contains(name, "backward");
  const CapturedTensor* input = at(r.inputs, backward ? 1 : 0);
  if (input == nullptr) return {};
  if (contains(name, "batch_norm"))
    return input->shape.size() < 2 ? Shape{} : rows_of(elements(*input), input->shape[1]);
  const CapturedTensor* statistics = backward ? at(r.inputs, 2) : at(r.outputs, 1);
  return statistics == nullptr ? Shape{} : rows_of(elements(*input), elements(*statistics));
}

Shape reduction_shape(const OperatorCall& r, string_view name) {
  if (name.starts_with("_foreach_")) {
    std::int64_t all = 0;
    for (const CapturedTensor& t : r.inputs) all = sum(all, elements(t));
    return {1, all};
  }
  const CapturedTensor *in = at(r.inputs, 0), *out = at(r.outputs, 0);
  if (in == nullptr || out == nullptr) return {};
  if (contains(name, "softmax") || name.starts_with("cum") || name == "logcumsumexp") {
    const std::int64_t width = r.width > 0 ? r.width : in->shape.empty() ? 1 : in->shape.back();
    return width == 0 ? Shape{} : rows_of(elements(*in), elements(*in) / width);
  }
  if (contains(name, "nll_loss")) {
    const CapturedTensor* scores = at(r.inputs, contains(name, "backward") ? 1 : 0);
    if (scores == nullptr || scores->shape.empty()) return {};
    const std::int64_t classes = scores->shape.size() == 1 ? scores->shape[0] : scores->shape[1];
    return classes == 0 ? Shape{} : Shape{elements(*scores) / classes, classes};
  }
  if (contains(name, "backward")) return rows_of(elements(*out), elements(*in));  // its results were what comes in
  return rows_of(elements(*in), elements(*out));
}

Shape embedding_shape(const OperatorCall& r, string_view name) {
  const bool backward = contains(name, "backward");
  const CapturedTensor* table = backward ? of_rank(r.outputs, 0, 2) : of_rank(r.inputs, 0, 2);
  const CapturedTensor* indices = at(r.inputs, 1);
  if (table == nullptr || indices == nullptr) return {};
  return {elements(*indices), table->shape[1], table->shape[0]};
}

// --- element by element

bool is_list(string_view name) { return name.starts_with("_foreach_") || name.starts_with("_amp_foreach_"); }

// Inputs that the operator writes.
std::int64_t written_elements(const OperatorCall& r, bool all) {
  std::int64_t n = 0;
  for (const CapturedTensor& t : r.inputs)
    if (std::find(r.writes.begin(), r.writes.end(), t.storage) != r.writes.end())
      n = all ? sum(n, elements(t)) : std::max(n, elements(t));
  return n;
}

// Of lists of tensors the elements of the first; which tensor is in which list only the recorder knows. Where it
// does not say, it is what the operator makes or writes, but not of a fused optimizer, which writes several lists.
Shape element_shape(const OperatorCall& r, string_view name) {
  if (r.elements > 0) return {r.elements};
  if (name.starts_with("_fused_")) return {};
  const bool list = is_list(name);
  std::int64_t n = 0;
  for (const CapturedTensor& t : r.outputs) n = list ? sum(n, elements(t)) : std::max(n, elements(t));
  if (r.outputs.empty()) n = written_elements(r, list);
  return n > 0 ? Shape{n} : Shape{};
}

Shape shape_by_class(const OperatorCall& r, string_view name) {
  switch (r.operator_class) {
    case OperatorClass::gemm:
      return gemm_shape(r, name);
    case OperatorClass::convolution:
      return convolution_shape(r, name);
    case OperatorClass::attention:
      return attention_shape(r, name);
    case OperatorClass::normalization:
      return normalization_shape(r, name);
    case OperatorClass::reduction:
      return reduction_shape(r, name);
    case OperatorClass::embedding:
      return embedding_shape(r, name);
    case OperatorClass::optimizer:
    case OperatorClass::elementwise:
    case OperatorClass::memory:
      return element_shape(r, name);
    case OperatorClass::other:
      break;
  }
  return {};
}

}  // namespace

Shape work_shape(const OperatorCall& r) { return shape_by_class(r, base_name(r.name)); }

Shape storage_shape(const CapturedTensor& t, Bytes bytes, bool made) {
  const std::int64_t n = elements(t);
  if (n == 0 || t.element_bytes == 0 || n > bytes || n * t.element_bytes != bytes) return {};
  if (t.shape.empty()) return {1};
  if (t.strides.empty()) return t.shape;
  std::vector<std::size_t> order(t.shape.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return t.strides[a] > t.strides[b]; });
  Shape shape;
  std::int64_t inside = n;
  for (const std::size_t i : order) {
    shape.push_back(t.shape[i]);
    inside /= t.shape[i];
    if (t.shape[i] != 1 && t.strides[i] != inside) return {};  // a hole, or elements that are seen twice
  }
  return made ? t.shape : shape;
}

}  // namespace memwall
