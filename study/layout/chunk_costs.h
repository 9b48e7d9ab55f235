// What the passes of one chunk of a pipeline cost: its operators are simulated alone, a few passes one after the other,
// and the last of each kind is taken.
#pragma once

#include <cstdint>
#include <string>

#include "models/workload/generate/parallel/stage_program.h"
#include "study/layout/chunk_programs.h"
#include "study/layout/job_pricing.h"

namespace memwall {

struct PassTime {
  Duration device{};    // from the first kernel's start to the last one's end, where the host is ahead, or has drained
  Duration host{};      // that the host takes to issue it
  Duration to_launch{};  // of that, until the first kernel is launched
  Duration tail{};       // of `device`: what is left when the host has issued all, where the host is the slower one
};

struct ChunkCosts {
  FoldedChunk memory;
  PassTime forward, backward;
  double flops = 0;  // of a forward and a backward pass, what is computed again not counted
};

// Does the host wait for the device around each message, so that every pass begins with an idle device?
bool drains(const ParallelJob& job);

// Throws what generators, pricing and simulation throw. REQUIRES: rank < job.pipeline.ranks, chunk <
// job.pipeline.chunks. `programs`: where the chunk's programs are kept, under `key` of all that they depend on.
ChunkCosts chunk_costs(const ParallelJob& job, std::int64_t rank, std::int64_t chunk, const JobPricing& pricing,
                       ChunkPrograms& programs, const std::string& key);

}  // namespace memwall
