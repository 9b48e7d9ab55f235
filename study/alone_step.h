// A step of one rank among several of its host: how long it would take if no other rank moved or computed there, and
// which of the things that they share makes it longer.
#pragma once

#include <functional>
#include <optional>

#include "sim/machine/machine.h"
#include "traces/run/run.h"

namespace memwall {

// What ranks of a host share: ways to the host (PCIe uplinks, NVLink ports), the channels of its DRAM, its cores, and
// the ways to tiers of storage with the drives behind them.
enum class SharedResource : std::uint8_t { links, memory_channels, cores, storage };

// The machine with every link, memory and core of its own for each rank, but for those of `kept`. What several ranks'
// memory takes of a tier that they share stays as it is, and so do the adapters of a network.
Machine without_sharing(Machine machine, std::optional<SharedResource> kept = {});

// Mean step time of the run on that machine: what is left of the step is waiting for other ranks' copies, storage
// accesses and work on the CPU. 0 where the run has one rank, or nothing of it crosses what ranks share. `run_again`:
// as `run` was, not recorded, on another machine.
Duration alone_step(const Run& run, const std::function<Run(const Machine&)>& run_again);

// Of a step that others make longer: mean step times with one resource shared. `run` holds its alone_step. All 0 where
// that is 0, or less than half a percent below the step.
ContendedSteps contended_steps(const Run& run, const std::function<Run(const Machine&)>& run_again);

}  // namespace memwall
