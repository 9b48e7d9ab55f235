// What one memory plan's file decides, counted.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "traces/plan/plan_compare.h"
#include "traces/plan/plan_document.h"

namespace memwall {

// Copies between device memory and a tier of the plan. Of storages whose size the file does not say: 0 bytes.
struct PlanTraffic {
  TransferStyle style;
  std::uint64_t homes = 0;  // storages that live there from the start
  std::uint64_t copies = 0, fetches = 0;
  Bytes bytes_out = 0, bytes_back = 0;
};

struct PlanSummary {
  std::vector<PlanTraffic> traffic;  // as MemoryPlan::tiers
  std::uint64_t drops = 0;
  std::uint64_t allocations = 0;  // fetches without content
  std::uint64_t reruns = 0, called = 0, keeps = 0;
  // Against a plan that decides nothing: what this one decides stands under `other`.
  PlanComparison decided;
};

PlanSummary summary_of(const PlanDocument& document);

}  // namespace memwall
