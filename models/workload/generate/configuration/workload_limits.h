// Which settings of a training job can hold together, and which are too large to be written down: a hostile file
// must neither overflow a number nor fill the memory of this computer.
#pragma once

#include <string>

#include "models/workload/generate/configuration/workload_file.h"

namespace memwall {

// What is wrong, as a sentence without its end ("model.heads 7 does not divide model.width 64"), or "". Each setting
// is within the limits of workload.proto.
std::string contradiction(const TrainingJob& job);

}  // namespace memwall
