#include "study/layout/job_pricing.h"

#include <utility>

#include "models/hw/modelled_step.h"
#include "sim/machine/rank_machine.h"
#include "sim/trace/equal_places.h"

namespace memwall {

Trace JobPricing::priced(Trace joined) const {
  Trace trace = modelled_on(with_equal_places(std::move(joined), shared_sizes(machine)), machine);
  for (const ScaleFactors& factors : scale) trace = scaled(std::move(trace), factors);
  return trace;
}

Duration JobPricing::allocator_call() const {
  double host = 1;
  for (const ScaleFactors& factors : scale) host *= factors.host;
  return from_seconds(to_seconds(machine.host.allocator_call) * host);
}

}  // namespace memwall
