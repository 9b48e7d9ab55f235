// Two memory plans side by side.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "cli/print/table.h"
#include "traces/plan/plan_compare.h"

namespace memwall {

// "about 169 storages: 3.045 GB copied, 12 ops run again"; "nothing". By fate.
std::string plan_decisions_text(const std::array<std::uint64_t, kStorageFates>& storages,
                                const std::array<Bytes, kStorageFates>& bytes, std::uint64_t ops);
// Modules that differ in numbers alone as one; by bytes that differ, largest first.
std::vector<PlanModuleDifference> modules_alike(const std::vector<PlanModuleDifference>& modules);

std::vector<Table> plan_comparison_tables(const PlanComparison& comparison);
// One JSON object: `schema`, the plans, and the tables.
std::string plan_comparison_json(const PlanComparison& comparison);

}  // namespace memwall
