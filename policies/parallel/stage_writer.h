// The program of one stage of a pipeline: the ops of its blocks in the order of a schedule, messages with its neighbours.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "policies/parallel/pipeline_stages.h"
#include "sim/machine/machine.h"
#include "sim/machine/pricer.h"
#include "sim/trace/trace_builder.h"

namespace memwall {

enum class StageSchedule : std::uint8_t { one_f_one_b, gpipe };

// What crosses between stages in one run of one pass.
struct StageMessage {
  StorageId storage = kNoStorage;
  std::int64_t from = 0, to = 0;
  bool backward = false;
  std::int64_t pass = 0;
  std::uint32_t rendezvous = 0;
};

// Groups of these names hold numbers of stages, not of ranks.
inline constexpr const char* kNeighbours = "pipeline";
inline constexpr const char* kAllStages = "all stages";

// `one`: the step, of one rank. Throws nothing but what the price of a message throws.
Trace stage_of_pipeline(const Trace& one, const PipelineStages& stages, const std::vector<StageMessage>& messages,
                        const Machine& machine, const Pricer& pricer, StageSchedule schedule, std::int64_t stage);

}  // namespace memwall
