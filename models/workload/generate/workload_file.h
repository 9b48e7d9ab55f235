// A workload: model and recipe, by name ("llama3-8b"), from a .textproto of a few lines, or the
// model from a Hugging Face config.json.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/workload/generate/model.h"
#include "models/workload/generate/recipe.h"

namespace memwall {

struct TrainingJob {
  Model model;
  Recipe recipe;
};

// The workloads that memwall knows, by name, sorted.
std::vector<std::string> known_workloads();

// `what`: a known name, or a path to a .textproto or a config.json. Throws InputError (file, line, found,
// expected) or UsageError (no such name, the nearest one).
TrainingJob load_training_job(const std::string& what);

// Changes one setting: "batch=2", "model.layers=4". Throws UsageError naming the nearest key.
void set(TrainingJob& job, const std::string& assignment);

}  // namespace memwall
