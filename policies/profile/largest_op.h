// The op of a step that uses most device memory: what it reads and writes has to be there at once, whatever the plan.
#pragma once

#include "policies/profile/step_profile.h"

namespace memwall {

struct LargestOp {
  OpId op = kNoOp;  // kNoOp: no kernel uses device memory
  Bytes bytes = 0;  // of all storages that it uses, as the allocator holds them; a plan of whole storages needs as much
};

LargestOp largest_op(const StepProfile& profile);

}  // namespace memwall
