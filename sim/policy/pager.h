// A pager decides online what leaves a full tier, and is asked where room is missing alone. It sees, it answers with
// moves, and never calls back; every answer is checked. Of a trace of several ranks one pager serves each: a call is
// about one rank's memory, tiers are one GPU's.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/machine/machine.h"
#include "sim/trace/trace.h"

namespace memwall {

// Which clock the pager lives on. `host` sits over an allocator: an allocation that does not
// fit makes the host stop until room is made (DTR, swapping). `device` has its own address
// space and faults at kernel start (UVM, G10): the stream stops, the host does not.
enum class PagerClock : std::uint8_t { host, device };

enum class MoveKind : std::uint8_t {
  evict,  // copy to `to`, then give the memory back
  drop    // give the memory back: the content is dead or has a valid copy in a slower tier
};

struct Move {
  MoveKind kind = MoveKind::evict;
  StorageId storage = kNoStorage;
  std::uint8_t to = 0;  // index into Machine::tiers: target of evict
};

// What a pager may see: the past and the present, never the future.
struct ResidentStorage {
  StorageId storage = kNoStorage;
  Bytes bytes = 0;     // as the allocator holds it
  Time last_use{};     // on the pager's clock
  // A valid copy exists in a slower tier: dropping costs nothing. The engine has none: what comes back leaves no copy
  // behind, so that it refuses every drop.
  bool clean = false;
};

class PagerView {
 public:
  virtual ~PagerView() = default;
  virtual Time now() const = 0;
  virtual Bytes free_bytes(int tier) const = 0;
  // Storages in the device tier that may be moved, least recently used first, until `take` answers false. Not among them
  // is what the op that room is made for uses, nor on the clock of the device what running ops use. Costs in proportion
  // to what is looked at: a pager that takes the first few does not pay for the rest.
  virtual void each_movable(const std::function<bool(const ResidentStorage&)>& take) const = 0;
};

class Pager {
 public:
  virtual ~Pager() = default;
  virtual PagerClock clock() const = 0;
  // Once, before the run. The only place where the future may be looked at.
  virtual void plan(const Machine&, const Trace&) {}
  // Tiers for what does not fit at the start, in the order in which they fill; empty: all slower ones, in the
  // machine's order.
  virtual std::vector<int> spill_order() const { return {}; }
  // `bytes` more are needed in tier `tier`. Asked again until the allocation succeeds; an empty
  // answer means nothing can be done: the run is out of memory.
  virtual std::vector<Move> make_room(int tier, Bytes bytes, const PagerView& view) = 0;
};

}  // namespace memwall
