#include "models/workload/import/inference/tensor_table.h"

#include <algorithm>
#include <functional>

namespace memwall {
namespace {

// The most that the large pool of the caching allocator leaves unsplit (c10/cuda/CUDACachingAllocator.cpp,
// should_split).
constexpr Bytes kUnsplit = Bytes{1} << 20;

}  // namespace

std::uint32_t TensorTable::add_storage(const KnownStorage& storage) {
  storages.push_back(storage);
  return static_cast<std::uint32_t>(storages.size() - 1);
}

TensorId TensorTable::add(KnownTensor tensor) {
  const auto id = static_cast<TensorId>(tensors.size());
  KnownStorage& storage = storages[tensor.storage];
  if (storage.first == kNoTensor) storage.first = id;
  if (!tensor.weight) {
    if (tensor.shaped) by_shape_[tensor.shape].push_back(id);
    by_size_[storage.bytes].push_back(id);
  }
  tensors.push_back(std::move(tensor));
  return id;
}

void TensorTable::learn(TensorId tensor, const WantedTensor& as) {
  KnownTensor& t = tensors[tensor];
  if (t.element_bytes == 0) t.element_bytes = as.element_bytes;
  if (t.shaped) return;
  t.shape = as.shape;
  t.shaped = true;
  by_shape_[t.shape].push_back(tensor);
}

void TensorTable::free(std::uint32_t storage) { storages[storage].alive = false; }

Fit TensorTable::fit(TensorId tensor, const WantedTensor& wanted) const {
  const KnownTensor& t = tensors[tensor];
  const KnownStorage& s = storages[t.storage];
  if (t.element_bytes != 0 && wanted.element_bytes != 0 && t.element_bytes != wanted.element_bytes) return Fit::none;
  if (wanted.bytes() > static_cast<double>(s.bytes)) return Fit::none;
  if (t.shaped) {
    if (t.shape == wanted.shape) return Fit::exact;
    return element_count(t.shape) == element_count(wanted.shape) ? Fit::same_elements : Fit::none;
  }
  const Bytes spare = s.bytes - rounded_size(static_cast<Bytes>(wanted.bytes()));
  if (spare == 0) return Fit::same_size;
  return s.bytes > kUnsplit && spare <= kUnsplit ? Fit::near_size : Fit::none;
}

void TensorTable::collect(std::vector<TensorId>& list, std::vector<TensorId>& found) const {
  std::erase_if(list, [&](TensorId t) { return !usable(t); });
  found.insert(found.end(), list.begin(), list.end());
}

std::vector<TensorId> TensorTable::matching(const WantedTensor& wanted) {
  std::vector<TensorId> found;
  if (const auto exact = by_shape_.find(wanted.shape); exact != by_shape_.end()) collect(exact->second, found);
  const Bytes least = rounded_size(static_cast<Bytes>(wanted.bytes()));
  const Bytes most = least > kUnsplit / 2 ? least + kUnsplit : least;
  for (auto it = by_size_.lower_bound(least); it != by_size_.end() && it->first <= most; ++it)
    collect(it->second, found);
  std::sort(found.begin(), found.end(), std::greater<>());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::erase_if(found, [&](TensorId t) { return fit(t, wanted) == Fit::none; });
  return found;
}

int TensorTable::element_bytes_of(const Shape& shape) const {
  const auto found = by_shape_.find(shape);
  if (found == by_shape_.end()) return 0;
  for (auto t = found->second.rbegin(); t != found->second.rend(); ++t)
    if (usable(*t)) return tensors[*t].element_bytes;
  return 0;
}

}  // namespace memwall
