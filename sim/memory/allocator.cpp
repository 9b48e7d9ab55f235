#include "sim/memory/allocator.h"

#include "sim/error.h"
#include "sim/memory/pytorch_allocator.h"

namespace memwall {

void refuse_allocator(const std::string& name, const std::vector<std::string>& known) {
  throw UsageError("There is no allocator '" + name + "'; expected one of: " + listed(known) + "." +
                   did_you_mean(name, known));
}

namespace {

// Allocators that have no settings.
struct Plain {
  const char* name;
  std::unique_ptr<Allocator> (*make)(Bytes capacity);
};
constexpr Plain kPlain[] = {{"ideal", make_ideal_allocator},
                            {"cuda_async", make_cuda_async_allocator},
                            {"stitching", make_stitching_allocator}};

}  // namespace

const std::vector<std::string>& allocator_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all{"pytorch"};
    for (const Plain& plain : kPlain) all.emplace_back(plain.name);
    return all;
  }();
  return names;
}

std::unique_ptr<Allocator> make_allocator(const std::string& name, Bytes capacity, const AllocatorSettings& settings,
                                          std::optional<Bytes> device_total) {
  for (const Plain& plain : kPlain)
    if (name == plain.name) return plain.make(capacity);
  if (name != "pytorch") refuse_allocator(name, allocator_names());
  if (settings.backend == AllocatorSettings::Backend::cuda_malloc_async) return make_cuda_async_allocator(capacity);
  auto allocator = std::make_unique<PytorchAllocator>(capacity, nullptr, settings);
  if (device_total) allocator->set_device_total(*device_total);
  return allocator;
}

}  // namespace memwall
