// What a kernel moves through HBM of the bytes that it reads and writes.
//
// Op::bytes counts what leaves the multiprocessors. L2 serves a part of it: nothing is missing of a working set (the
// bytes of one kernel) up to Gpu::l2_kept times L2, all of it from Gpu::l2_lost times L2 on, and a share that grows
// linearly in between. Machine files say where their figures come from; one that states no such limits loses
// working set / L2, at most all.
#pragma once

#include "sim/machine/machine.h"
#include "sim/trace/op.h"

namespace memwall {

// Bytes of the op that L2 does not serve. All of them where the machine states no L2.
double hbm_bytes(const Gpu& gpu, const Op& op);

// The same in the op's duration: never more than HBM of this bandwidth moves in it. What tensors' sizes say beyond that
// was served by caches, as the duration shows.
Bytes hbm_traffic(const Gpu& gpu, BytesPerSecond bandwidth, const Op& op);

}  // namespace memwall
