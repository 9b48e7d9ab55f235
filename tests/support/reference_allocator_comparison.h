// The fast caching allocator and the reference, driven by the same calls and compared after each.
#pragma once

#include <optional>

#include "tests/support/reference_allocator_rules.h"
#include "tests/support/reference_allocator_scenario.h"

namespace memwall {

struct AllocatorDifference {
  std::size_t operation = 0;  // index into AllocatorScenario::operations; their number = while giving all back
  std::string what;
};

// The first difference in results, usage, counts, statistics or calls to the observer after any operation, or in the
// segments at intervals; or an invariant that does not hold (bytes add up, limits are kept, blocks cover segments, free
// neighbours are joined, everything freed can be given back). Nothing if there is none.
// `rules`: of the reference.
std::optional<AllocatorDifference> compare_with_reference(const AllocatorScenario& scenario,
                                                          const ReferenceRules& rules = {});

// The same between the reference with its own rules and one with `rules`: what an altered rule does.
std::optional<AllocatorDifference> compare_references(const AllocatorScenario& scenario, const ReferenceRules& rules);

// A part of the scenario that still differs under compare_with_reference, as short as removing operations makes it.
AllocatorScenario shortest_difference(AllocatorScenario scenario);

}  // namespace memwall
