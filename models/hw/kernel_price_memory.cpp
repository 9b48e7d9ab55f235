#include "models/hw/kernel_price_memory.h"

#include <bit>
#include <cassert>

#include "models/hw/kernel_cost.h"

namespace memwall {
namespace {

// The finalizer of splitmix64 over the running value.
std::uint64_t stirred(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0xbf58476d1ce4e5b9ULL;
  return hash ^ (hash >> 29);
}

}  // namespace

KernelPriceMemory::KernelPriceMemory(const Machine& machine, std::size_t places) : machine_(machine), size_(places) {
  assert(std::has_single_bit(places));
}

Duration KernelPriceMemory::price(const Op& op, const Shape& shape) {
  if (places_.empty()) places_.resize(size_);
  const Work work = work_of(op);
  Place& place = places_[hash_of(work, shape) & (size_ - 1)];
  if (place.taken && place.work == work && place.shape == shape) return place.price;
  place.price = kernel_duration(machine_, op, shape);
  place.work = work;
  place.shape = shape;
  place.taken = true;
  return place.price;
}

KernelPriceMemory::Work KernelPriceMemory::work_of(const Op& op) {
  return {std::bit_cast<std::uint64_t>(op.flops),
          static_cast<std::uint64_t>(op.bytes),
          std::bit_cast<std::uint32_t>(op.waves),
          op.kernels,
          op.phase,
          op.operator_class,
          op.data_type};
}

std::uint64_t KernelPriceMemory::hash_of(const Work& work, const Shape& shape) {
  std::uint64_t hash = stirred(work.flops, work.bytes);
  hash = stirred(hash, std::uint64_t{work.waves} << 32 | std::uint64_t{work.kernels} << 16);
  hash = stirred(hash, static_cast<std::uint64_t>(work.phase) << 16 |
                           static_cast<std::uint64_t>(work.operator_class) << 8 |
                           static_cast<std::uint64_t>(work.data_type));
  for (const std::int64_t extent : shape) hash = stirred(hash, static_cast<std::uint64_t>(extent));
  return hash ^ (hash >> 32);
}

}  // namespace memwall
