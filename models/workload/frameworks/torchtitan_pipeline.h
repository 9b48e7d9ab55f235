// Pipelines of torchtitan's TOML: schedule, stages, micro-batches. Internal to models/workload/frameworks.
#pragma once

#include <cstdint>
#include <string>

#include "models/workload/frameworks/configuration_file.h"

namespace memwall {

struct TorchtitanPipeline {
  bool gpipe = false;
  std::int64_t stages_per_rank = 1;
  std::int64_t micro_batch = 1;  // sequences
  std::string stage_layout;      // as of ModelParallel; "": torchtitan's own division, which the generator makes
};

// `ranks`: of the pipeline; `batch`: training.local_batch_size; `network`: a workload's name, "" = not known, which
// refuses what is divided by its layers. With one rank the keys are asked for, and nothing is refused.
// Throws InputError with what torchtitan refuses, UsageError for what is not implemented.
TorchtitanPipeline read_torchtitan_pipeline(const ConfigurationFile& file, std::int64_t ranks, std::int64_t batch,
                                            const std::string& network);

}  // namespace memwall
