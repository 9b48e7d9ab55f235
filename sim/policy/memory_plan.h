// A memory plan: when the storages of a step leave device memory, and what brings them back.
//
// Data only. Policies and planners make plans for one trace; check_plan (plan_check.h) says whether a plan can be
// carried out, write_plan (plan_writer.h) puts it into the trace.
//
// Copying, dropping and fetching are decisions of their own: a storage may be copied to another tier long before its
// memory is needed, and dropped later for nothing, as long as the copy holds the newest version of its content.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "sim/machine/machine.h"
#include "sim/trace/trace.h"

namespace memwall {

// A point of the host program: right before or right after an op of the trace that the plan is for. At one point what
// has the lower `order` goes first; between equals copies, drops, fetches, re-runs, and then the order of the plan.
struct PlanPoint {
  OpId op = kNoOp;
  bool after = false;
  std::uint32_t order = 0;

  bool operator==(const PlanPoint&) const = default;
  friend bool operator<(const PlanPoint& a, const PlanPoint& b) {
    return std::tuple(a.op, a.after, a.order) < std::tuple(b.op, b.after, b.order);
  }
};

// How copies between device memory and a tier are carried out.
struct TransferStyle {
  std::string tier;           // "host", "nvme", "peer_hbm", or another of the machine
  std::string through;        // the tier in which they are staged on their way; "" = they go straight
  bool pinned = true;         // host memory page-locked; false: every copy blocks the host
  bool side_streams = true;   // on streams of their own; false: on the compute stream, where a copy out blocks the host
  std::uint32_t staging = 2;  // buffers per direction where copies are staged
  TierClass tier_class = TierClass::host;  // of `tier`

  // Of a storage at `tier`.
  bool pins_memory() const { return tier_class == TierClass::host && pinned; }
  bool operator==(const TransferStyle&) const = default;
};

// The newest content is copied to a tier; the storage stays.
struct PlannedCopy {
  PlanPoint at;
  std::uint8_t tier = 0;  // index into MemoryPlan::tiers
  bool operator==(const PlannedCopy&) const = default;
};

// Device memory is given back: once copies that have begun have ended, and what other streams still do with it.
struct PlannedDrop {
  PlanPoint at;
  bool operator==(const PlannedDrop&) const = default;
};

// Device memory is allocated again and, unless what follows overwrites all of it, filled from a tier.
struct PlannedFetch {
  static constexpr std::uint8_t kNoTier = 0xff;  // allocate only
  PlanPoint at;
  std::uint8_t tier = 0;
  bool latest_safe = false;  // `at` is where it has to be there; when its copy is issued, latest_safe.h says
  bool operator==(const PlannedFetch&) const = default;
};

// Other content came to the home tier of a storage by way of `host`, which lies in the tier that copies are staged in:
// it is written on from there, after op `op`.
struct HomeUpdate {
  OpId op = kNoOp;
  StorageId host = kNoStorage;
  bool operator==(const HomeUpdate&) const = default;
};

// Everything about one storage of device memory. Copies, drops and fetches ascend.
struct StorageDecision {
  static constexpr std::uint8_t kDevice = 0xff;

  StorageId storage = kNoStorage;
  // Index into MemoryPlan::tiers: it lives there from the start, and is lent to the device.
  std::uint8_t home = kDevice;
  // Index into MemoryPlan::tiers: a copy of what the storage begins with lies there, made in the step before, and one
  // of what it ends with is left there for the next. The first step has none yet: it has to copy it before it may drop
  // it.
  std::uint8_t held = kDevice;  // kDevice: none
  // An op that the policy itself puts into the trace copies its content away; its last drop is its end. Not in plans of
  // files and planners: check_plan knows no such op.
  bool taken_away = false;
  std::vector<PlannedCopy> copies;
  std::vector<PlannedDrop> drops;
  std::vector<PlannedFetch> fetches;
  std::vector<HomeUpdate> updates;
  bool operator==(const StorageDecision&) const = default;
};

// Ops of the trace are run again, as the host program issued them. A storage that the plan has dropped and that they
// make stays afterwards if the next thing that happens to it is a use, by an op or by another re-run; it does not if
// that is a drop, a fetch, its end or another re-run that makes it. Whatever else they make is given back at their end,
// but a second one of what is still there from the first time behind the last of them that uses it. What lived before
// the step (running statistics) they write a second time.
struct PlannedRerun {
  PlanPoint at;
  std::vector<OpId> ops;  // ascending, at least one; all before `at`
  // Ascending, all before `at`, none of `ops`: the host calls them again, too, without work for the device. Their
  // results of the first time are still there, or nobody needs them.
  std::vector<OpId> called{};
  bool operator==(const PlannedRerun&) const = default;
};

// The program gives back the storage before: it lives until then. What lives for a re-run alone, until right then, the
// re-run gives back behind its last use.
struct PlannedKeep {
  StorageId storage = kNoStorage;
  PlanPoint until;
  bool operator==(const PlannedKeep&) const = default;
};

struct MemoryPlan {
  std::vector<TransferStyle> tiers;
  std::vector<StorageDecision> storages;  // distinct
  std::vector<PlannedRerun> reruns;
  std::vector<PlannedKeep> keeps{};  // of storages without a decision
  bool operator==(const MemoryPlan&) const = default;
};

}  // namespace memwall
