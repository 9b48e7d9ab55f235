#include "models/workload/generate/operators/tensor.h"

#include <algorithm>
#include <cassert>
#include <cstdlib>
#include <numeric>

#include "models/workload/generate/operators/tape.h"

namespace memwall {

StorageLife::~StorageLife() {
  if (!permanent_) tape_->free(id_);
}

LiveStorage::~LiveStorage() {
  if (of_program_ && life_.use_count() > 1 && !permanent()) life_->tape().unreferenced(id());
}

std::int64_t Tensor::elements() const { return elements_of(shape); }

std::int64_t Tensor::size(int dimension) const {
  const int at = dimension < 0 ? dimension + dimensions() : dimension;
  assert(at >= 0 && at < dimensions());
  return shape[static_cast<std::size_t>(at)];
}

Bytes Tensor::touched_bytes() const {
  std::int64_t n = 1;
  for (std::size_t i = 0; i < shape.size(); ++i)
    if (strides[i] != 0) n *= shape[i];
  return n * bytes_of(type);
}

bool Tensor::contiguous() const {
  std::int64_t expected = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] == 1) continue;
    if (strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

Tensor Tensor::detached() const {
  Tensor t = *this;
  t.function.reset();
  t.output = 0;
  return t;
}

Shape contiguous_strides(const Shape& shape) {
  Shape strides(shape.size());
  std::int64_t n = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    strides[i] = n;
    n *= std::max<std::int64_t>(shape[i], 1);
  }
  return strides;
}

Shape strides_like(const Shape& shape, const Tensor& like) {
  if (like.shape != shape) return contiguous_strides(shape);
  std::vector<std::size_t> order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    if (like.strides[a] == 0 || like.strides[b] == 0) return false;
    return like.strides[a] > like.strides[b];
  });
  Shape strides(shape.size());
  std::int64_t n = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = n;
    n *= std::max<std::int64_t>(shape[order[i]], 1);
  }
  return strides;
}

// Groups of dimensions that lie in memory as one are split anew (ATen/TensorUtils.cpp, computeStride).
bool view_strides(const Tensor& tensor, const Shape& shape, Shape& strides) {
  if (tensor.contiguous()) {
    strides = contiguous_strides(shape);
    return true;
  }
  strides.assign(shape.size(), 0);
  auto view = static_cast<std::ptrdiff_t>(shape.size()) - 1;
  std::int64_t base = tensor.strides.back(), extent = 1, viewed = 1;
  for (auto d = static_cast<std::ptrdiff_t>(tensor.shape.size()) - 1; d >= 0; --d) {
    const auto at = static_cast<std::size_t>(d);
    extent *= tensor.shape[at];
    const bool ends = d == 0 || (tensor.shape[at - 1] != 1 && tensor.strides[at - 1] != extent * base);
    if (!ends) continue;
    while (view >= 0 && (viewed < extent || shape[static_cast<std::size_t>(view)] == 1)) {
      strides[static_cast<std::size_t>(view)] = viewed * base;
      viewed *= shape[static_cast<std::size_t>(view)];
      --view;
    }
    if (viewed != extent) return false;
    if (d > 0) {
      base = tensor.strides[at - 1];
      extent = viewed = 1;
    }
  }
  return view == -1;
}

Shape broadcast(const Shape& a, const Shape& b) {
  Shape result = a.size() >= b.size() ? a : b;
  const Shape& other = a.size() >= b.size() ? b : a;
  const std::size_t shift = result.size() - other.size();
  for (std::size_t i = 0; i < other.size(); ++i) {
    assert(result[i + shift] == other[i] || result[i + shift] == 1 || other[i] == 1);
    if (result[i + shift] == 1) result[i + shift] = other[i];
  }
  return result;
}

}  // namespace memwall
