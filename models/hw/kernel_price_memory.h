// Prices of kernels that were asked for before: a step repeats the same few hundred kernels thousands of times, and the
// price of a product of matrices is a search over tiles.
//
// What a price depends on is compared whole, so that a remembered price is the computed one to the last bit. A place
// holds one price and forgets it for another of the same hash: memory and time stay bounded whatever is asked.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/machine/machine.h"
#include "sim/trace/op.h"
#include "sim/trace/shape.h"

namespace memwall {

// Not for several threads at once.
class KernelPriceMemory {
 public:
  // `machine` must outlive it and stay as it is. `places`: prices held at most, a power of two.
  explicit KernelPriceMemory(const Machine& machine, std::size_t places = 1024);

  // kernel_duration(machine, op, shape).
  Duration price(const Op& op, const Shape& shape);

 private:
  // All that kernel_duration reads of an op, numbers as their bits.
  struct Work {
    std::uint64_t flops = 0, bytes = 0;
    std::uint32_t waves = 0;
    std::uint16_t kernels = 0;
    Phase phase = Phase::unknown;
    OperatorClass operator_class = OperatorClass::other;
    DataType data_type = DataType::unknown;
    bool operator==(const Work&) const = default;
  };
  struct Place {
    bool taken = false;
    Work work;
    Shape shape;
    Duration price{};
  };
  static Work work_of(const Op& op);
  static std::uint64_t hash_of(const Work& work, const Shape& shape);

  const Machine& machine_;
  const std::size_t size_;
  std::vector<Place> places_;  // made when first asked: many a pricer never is
};

}  // namespace memwall
