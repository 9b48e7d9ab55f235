// What two memory plans for one program decide differently.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "traces/plan/plan_document.h"

namespace memwall {

// What a plan does with a storage.
enum class StorageFate : std::uint8_t {
  kept,     // no decision: it stays
  copied,   // to another tier and back, or it lives there
  rerun,    // dropped, and made again
  dropped,  // for good
};
inline constexpr int kStorageFates = 4;
std::string_view to_string(StorageFate fate);

// Storages that a module makes, of one kind.
struct PlanModuleDifference {
  std::string module, kind;  // "" = the files do not say
  // Storages that one of the plans decides about.
  std::array<std::uint64_t, kStorageFates> base_storages{}, other_storages{};
  std::array<Bytes, kStorageFates> base_bytes{}, other_bytes{};
  std::uint64_t only_in_base = 0, only_in_other = 0;
  std::uint64_t different = 0;  // storages whose fate or tier differs
  Bytes different_bytes = 0;
};

// Ops of a module that are run again.
struct PlanRerunDifference {
  std::string module;
  std::uint64_t base_ops = 0, other_ops = 0;
};

struct PlanComparison {
  std::string trace;
  std::string base_made_by, other_made_by;
  std::uint64_t alike = 0;                    // storages with the same decision in everything
  std::uint64_t rescheduled = 0;              // the same fate and tier, else at other points or in another way
  std::uint64_t different = 0;                // else
  std::uint64_t unknown_bytes = 0;            // storages whose size neither file says: they count with 0 bytes
  std::vector<PlanModuleDifference> modules;  // with decisions; by bytes that differ, largest first, then by name
  std::vector<PlanRerunDifference> reruns;    // by name
  bool same_reruns = true;                    // in everything, with what lives longer
  std::optional<PlanExpectation> base_expected{}, other_expected{};

  PlanModuleDifference total() const;  // without names
  std::uint64_t base_ops() const;      // that are run again
  std::uint64_t other_ops() const;
};

// Throws UsageError where they are for different programs. `base_name`, `other_name`: for that sentence.
PlanComparison compare(const PlanDocument& base, const PlanDocument& other, const std::string& base_name,
                       const std::string& other_name);

}  // namespace memwall
