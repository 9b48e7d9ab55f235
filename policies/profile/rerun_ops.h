// The ops that make a storage's content again.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "policies/profile/step_profile.h"

namespace memwall {

struct RerunOps {
  std::vector<OpId> ops;                   // ascending
  std::vector<StorageId> inputs, outputs;  // that they start from, which must be there, and that they write; ascending
  Duration time{};                         // of the ops alone
};

// What a re-run right before op `at` repeats so that `storage` has its content there: all that wrote it and, where what
// these read is gone, overwritten or `absent` by then, what made that, and so on. Nothing where an op of these cannot
// be repeated (a collective, a node of a CUDA graph, one that the host waits for, one that is not of forward), where
// content from outside of the step was overwritten, and where it takes more than `most_ops`. `kept`: by storage, what
// is there although the step has given it back; empty: nothing.
std::optional<RerunOps> rerun_ops(const StepProfile& profile, StorageId storage, OpId at,
                                  const std::function<bool(StorageId)>& absent, std::size_t most_ops = 64,
                                  const std::vector<bool>& kept = {});

}  // namespace memwall
