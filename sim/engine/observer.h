// Watches a simulation and changes nothing. All hooks default to nothing.
#pragma once

#include "sim/memory/allocator.h"
#include "sim/trace/op.h"
#include "sim/units.h"

namespace memwall {

class Observer {
 public:
  virtual ~Observer() = default;
  // A tier's usage after an allocation, a free or a move. `tier`: index into Machine::tiers.
  virtual void on_memory(Time, int /*tier*/, const Usage&) {}
  // A storage begins or ceases to occupy a tier.
  virtual void on_residency(Time, StorageId, int /*tier*/, bool /*begins*/) {}
  // Bytes per second that flow over a link from now on.
  virtual void on_link_rate(Time, int /*link*/, double /*bytes_per_second*/) {}
  // Called now and then with the share of ops issued; for progress bars.
  virtual void on_progress(Time, double /*share*/) {}
};

}  // namespace memwall
