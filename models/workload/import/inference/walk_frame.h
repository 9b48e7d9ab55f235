// An operator that has begun and not ended, on the walk over a profile.
// Internal to the inference.
#pragma once

#include <cstdint>
#include <vector>

#include "models/workload/import/inference/profile_facts.h"
#include "models/workload/import/inference/tensor_table.h"

namespace memwall {

struct WalkFrame {
  std::uint32_t op = kNoIndex;
  FrameKind kind = FrameKind::operation;
  std::int64_t sequence = -1;    // its own, or that of the nearest operator around it that has one
  std::vector<TensorId> inputs;  // found ones, by order of the arguments
  std::vector<TensorId> made;    // by it and by the operators in it, views among them
  std::vector<TensorId> taken;   // by the operators in it, from `inputs`, `made` and what the forward pass saved
};

}  // namespace memwall
