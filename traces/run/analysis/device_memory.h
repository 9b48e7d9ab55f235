// What a process takes of its GPU's memory, as nvidia-smi shows it: what PyTorch's allocator has reserved, and what it
// knows nothing of. Tables of measurements state one of three figures: `allocated` (torch.cuda.max_memory_allocated),
// `reserved` (max_memory_reserved), or all of it.
//
//   context      what driver and context take, with the kernels that are loaded: the machine file's `unavailable`.
//   workspaces   cuBLAS's, which PyTorch takes from its own allocator, one for each stream with products: 32 MiB since
//                Hopper, else ":4096:2:16:8", 8,320 KiB (aten/src/ATen/cuda/CublasHandlePool.cpp).
//   NCCL         a buffer of each protocol (Simple 4 MiB, LL 512 KiB, LL128 4,800 KiB: NCCL, src/init.cc and
//                src/include/device.h) for each channel of each communicator's ring. Assumption: 24 channels between
//                GPUs joined by NVLink, 4 otherwise; trees, which NCCL connects when it first uses them, and what it
//                keeps besides are left out.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

#include "traces/run/run.h"

namespace memwall {

struct DeviceMemory {
  Bytes allocated = 0, reserved = 0;  // peaks of the simulated allocator, of blocks and with its cache
  // Reserved in a job whose optimizer makes its moments in its first step (first_steps.h); 0: it makes none so.
  Bytes from_first_step = 0;
  Bytes context = 0;
  std::size_t product_streams = 0;  // that have a workspace
  Bytes workspaces = 0;             // of all of them
  std::size_t communicators = 0;    // of more than one rank, that a collective uses
  int channels = 0;                 // of each
  Bytes communication = 0;          // of all of them
  // The workspaces lie in what PyTorch has allocated and reserved.
  Bytes allocated_in_all() const { return allocated + workspaces; }
  Bytes reserved_in_all() const { return std::max(reserved, from_first_step) + workspaces; }
  Bytes shown() const { return reserved_in_all() + context + communication; }
};

// Of the GPU that shows most, where the run holds several ranks; nothing for a run that does not tell what memory holds.
std::optional<DeviceMemory> device_memory(const Run& run);

}  // namespace memwall
