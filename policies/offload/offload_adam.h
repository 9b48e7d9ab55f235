// The optimizer step off the GPU: on the CPU, with its states on the host or on NVMe, or near the memory they are in.
//
// As DeepSpeed's ZeRO-Offload (deepspeed/runtime/zero/stage_1_and_2.py, csrc/adam/cpu_adam.cpp):
// gradients go to pinned host memory as backward produces them, and their device memory is free once they are
// there (release_sent_gradients); at the step the host waits for them, runs Adam, and sends the new parameters back;
// nothing overlaps with the next forward. The host reads parameter, gradient and two moments and writes three of them,
// 4 bytes each: 28 bytes of DRAM per parameter, and what it writes besides into the buffer that is sent back (2 bytes
// per 16-bit parameter). Ren et al. 2021, "ZeRO-Offload", measured rates that this matches. States of 16 bit without a
// master copy stay what they are, and the host keeps and updates 16-bit parameters: 14 bytes.
//
// In another tier of host memory the same, with everything that the step touches there. In a tier with compute near its
// memory the step runs there too: gradients and parameters go there and back, the states never cross a link.
//
// On NVMe (deepspeed/runtime/swap_tensor/) states come in sub-groups through page-locked buffers:
// read, compute, write, one after the other; pipelined, the read of the next and the write of the
// previous sub-group overlap the compute.
#pragma once

#include "policies/offload/offload_settings.h"
#include "sim/machine/pricer.h"
#include "sim/trace/trace.h"

namespace memwall {

// Removes the optimizer's ops from the device. Throws UsageError if the trace shows no optimizer
// states, or no gradient that the step reads, or has its parameters offloaded already.
Trace offload_optimizer_to_cpu(const Trace& trace, const Machine& machine, const Pricer& pricer,
                               const OffloadSettings& settings);

}  // namespace memwall
