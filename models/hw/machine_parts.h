// The parts of a machine, from the messages of its file: its numbers, GPU, host, and how collectives and storage work.
// REQUIRES of all: the checks of MachineText have passed, so that what is read is there and well formed.
#pragma once

#include <machine.pb.h>  // generated from machine.proto

#include <cmath>

#include "models/hw/quantity.h"
#include "sim/machine/machine.h"

namespace memwall {

inline double number_of(const schema::Quantity& q, Dimension d) { return parse_quantity(q.value(), d); }
inline Bytes size_of(const schema::Quantity& q) {
  return static_cast<Bytes>(std::llround(number_of(q, Dimension::size)));
}
inline double rate_of(const schema::Quantity& q) { return number_of(q, Dimension::bandwidth); }
inline Duration time_of(const schema::Quantity& q) { return from_seconds(number_of(q, Dimension::time)); }
inline double share_of(const schema::Quantity& q) { return number_of(q, Dimension::share); }
inline std::uint32_t count_of(const schema::Quantity& q) {
  return static_cast<std::uint32_t>(number_of(q, Dimension::count));
}

Gpu read_gpu(const schema::Gpu& from);
HostCosts read_host(const schema::Host& from);
CollectiveModel read_collective(const schema::Collective& from);
StorageRequests read_requests(const schema::Requests& from);

}  // namespace memwall
