// torchtitan's model converter "quantize.linear.float8": which layers compute in fp8, and what of its keys memwall does
// not follow. Internal to models/workload/frameworks.
#pragma once

#include "models/workload/frameworks/configuration_file.h"
#include "models/workload/frameworks/framework_job.h"

namespace memwall {

// Reads `model.converters` and what they read, and adds notes to `job`, whose `network` is known where the file names
// one. Does the model compute in fp8? Throws UsageError for converters and keys that are not implemented.
bool read_float8(const ConfigurationFile& file, FrameworkJob& job);

}  // namespace memwall
