#include "policies/planners/tried_plans.h"

#include <cstdint>
#include <utility>

namespace memwall {
namespace {

// Numbers one behind the other, each with its end: small ones take one byte. Lists begin with their length. Members are
// taken apart all at once, so that a new one does not compile before it is here.
class KeyWriter {
 public:
  void put(std::uint64_t number) {
    for (; number >= 0x80; number >>= 7) key_.push_back(static_cast<char>(number | 0x80));
    key_.push_back(static_cast<char>(number));
  }
  void put(const std::string& text) {
    put(text.size());
    key_ += text;
  }
  void put(const PlanPoint& point) {
    const auto& [op, after, order] = point;
    put(op), put(after ? 1 : 0), put(order);
  }
  void put(const TransferStyle& style) {
    const auto& [tier, through, pinned, side_streams, staging, tier_class] = style;
    put(tier), put(through), put(pinned ? 1 : 0), put(side_streams ? 1 : 0), put(staging);
    put(static_cast<std::uint64_t>(tier_class));
  }
  void put(const PlannedCopy& copy) {
    const auto& [at, tier] = copy;
    put(at), put(tier);
  }
  void put(const PlannedDrop& drop) {
    const auto& [at] = drop;
    put(at);
  }
  void put(const PlannedFetch& fetch) {
    const auto& [at, tier, latest_safe] = fetch;
    put(at), put(tier), put(latest_safe ? 1 : 0);
  }
  void put(const HomeUpdate& update) {
    const auto& [op, host] = update;
    put(op), put(host);
  }
  void put(const StorageDecision& decision) {
    const auto& [storage, home, held, taken_away, copies, drops, fetches, updates] = decision;
    put(storage), put(home), put(held), put(taken_away ? 1 : 0);
    put_all(copies), put_all(drops), put_all(fetches), put_all(updates);
  }
  void put(const PlannedRerun& rerun) {
    const auto& [at, ops, called] = rerun;
    put(at), put_all(ops), put_all(called);
  }
  void put(const PlannedKeep& keep) {
    const auto& [storage, until] = keep;
    put(storage), put(until);
  }
  void put(const MemoryPlan& plan) {
    const auto& [tiers, storages, reruns, keeps] = plan;
    put_all(tiers), put_all(storages), put_all(reruns), put_all(keeps);
  }
  std::string written() && { return std::move(key_); }

 private:
  template <typename List>
  void put_all(const List& list) {
    put(list.size());
    for (const auto& one : list) put(one);
  }

  std::string key_;
};

}  // namespace

std::string key_of(const MemoryPlan& plan) {
  KeyWriter writer;
  writer.put(plan);
  return std::move(writer).written();
}

RepairedPlan TriedPlans::get(MemoryPlan plan, const std::function<RepairedPlan(const MemoryPlan&)>& try_out) const {
  RepairedPlan tried = tried_.get(key_of(plan), [&] { return try_out(plan); });
  tried.plan = std::move(plan);
  return tried;
}

}  // namespace memwall
