#include "validate/replay/arena.h"

namespace memwall {

Arena::Arena(Bytes capacity) : capacity_(capacity), memory_(capacity), room_(capacity, kAlignment) {}

std::optional<Address> Arena::obtain(Bytes bytes) {
  const std::lock_guard lock(mutex_);
  const auto offset = room_.take(bytes);
  if (!offset) return std::nullopt;
  return reinterpret_cast<Address>(memory_.data()) + static_cast<Address>(*offset);
}

void Arena::give_back(Address address, Bytes bytes) {
  const std::lock_guard lock(mutex_);
  room_.give_back(static_cast<Bytes>(address - reinterpret_cast<Address>(memory_.data())), bytes);
}

Bytes Arena::free_bytes() const {
  const std::lock_guard lock(mutex_);
  return room_.free_bytes();
}

}  // namespace memwall
