#include "sim/allocator.h"

#include "sim/error.h"

namespace memwall {

std::unique_ptr<Allocator> make_allocator(const std::string& name, Bytes capacity) {
  if (name == "ideal") return make_ideal_allocator(capacity);
  if (name == "pytorch") return make_pytorch_allocator(capacity);
  const std::string nearest = nearest_name(name, {"ideal", "pytorch"});
  throw UsageError("There is no allocator '" + name + "'; expected ideal or pytorch." +
                   (nearest.empty() ? "" : " Did you mean '" + nearest + "'?"));
}

}  // namespace memwall
