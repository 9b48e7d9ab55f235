// A forward pass as a chain of stages for rotor: what each makes, keeps and passes on, what lives beside the chain, and
// which ops make it again.
//
// A stage is a unit of forward_chains_of(), or several neighbours: where one changes what another has made, where
// backward of a unit does not begin behind that of the next, and where it reads nothing. Backward of a unit begins with
// the first op that reads what the unit has saved for itself, or has started from.
//
// Of the chain is what a unit makes and backward reads and gives back, what nobody reads behind the unit although it
// lives until backward, and what only the unit after it reads; a unit's output is what the next one reads. What is read
// further on, or lives on for other reasons, counts as beside the chain and stays.
#pragma once

#include <optional>
#include <vector>

#include "policies/planners/forward_chain.h"
#include "policies/planners/rotor_chain.h"
#include "policies/profile/step_profile.h"
#include "policies/trace/parameter_gathers.h"

namespace memwall {

struct RotorUnit {
  OpId begin = 0, end = 0;        // its forward ops stand from `begin` to before `end`
  std::vector<OpId> ops;          // those that compute; ascending
  std::vector<StorageId> output;  // ascending, as `saved`
  std::vector<StorageId> saved;   // for backward; parts of the output among it
  std::vector<StorageId> idle;    // that live until backward, and that nobody reads behind the unit; ascending
  OpId backward = kNoOp;          // its backward begins here: re-runs for it stand right before
  bool is_repeatable = true;
  OpId bound = kNoOp;  // where it is not: the op that may not run again; kNoOp: what it starts from is gone
};

struct RotorPass {
  RotorChain chain;              // the units, and one stage more: what runs between them and their backward
  std::vector<RotorUnit> units;  // none where nothing can be dropped
  Bytes beside = 0;              // that lives throughout; not in `chain`
  Bytes most_beside = 0;         // at any time of the pass
};

// At most so many units, of one or more; more are joined evenly.
RotorPass rotor_pass(const StepProfile& profile, const ParameterGathers& gathers, const ForwardChain& chain,
                     std::size_t most_units);

// The unit's ops that make the newest content of `wanted`, which it made, from what comes from outside of it. Nothing
// where an op of these cannot be repeated, or what it starts from is overwritten by then. Without gathers of
// parameters: what the ops read of these, backward gathers again, or the re-run does
// (policies/recompute/rerun_gathers.h).
std::optional<std::vector<OpId>> ops_making(const StepProfile& profile, const ParameterGathers& gathers,
                                            const RotorUnit& unit, const std::vector<StorageId>& wanted);

}  // namespace memwall
