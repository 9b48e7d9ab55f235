// A workload: model and recipe, by name ("llama3-8b"), from a .textproto of a few lines, or the
// model from a Hugging Face config.json.
//
// A .textproto holds `model { ... }` and `recipe { ... }` with the names that model.h and recipe.h have; with
// `base: "llama3-8b"` (or the path of another file beside it) only what differs. The schema is workload.proto.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/workload/generate/configuration/model.h"
#include "models/workload/generate/configuration/recipe.h"

namespace memwall {

struct TrainingJob {
  Model model;
  Recipe recipe;
  std::vector<std::string> notes;            // what the file says and the generators do not follow: for people
  std::vector<std::filesystem::path> files;  // that were read
};

struct WorkloadSummary {
  std::string name, description;
};

// The workloads that memwall knows, by name, sorted. In the folder that the environment variable
// MEMWALL_WORKLOADS names, else as data_folder() says. Throws InputError where it cannot be read.
std::filesystem::path workload_folder();
std::vector<std::string> known_workloads();
std::vector<WorkloadSummary> list_workloads();

// `what`: a known name, or a path to a .textproto or a config.json; settings may follow ("llama3-8b:batch=2,layers=4").
// Throws InputError (file, line, found, expected) or UsageError (no such name, the nearest one).
TrainingJob load_training_job(const std::string& what);

// The known name that is meant by an unknown one: of a family's ("gpt2") its smallest network, "gpt2-124m"; else the
// nearest by letters, or "". Throws as known_workloads() does.
std::string nearest_workload(const std::string& name);

// "llama3-8b:batch=2,blocks=3,4": the name, or the file, and "batch=2", "blocks=3,4". Of a file's folder that has a
// colon in its name, that is the folder's.
struct NameAndSettings {
  std::string name;
  std::vector<std::string> settings;
};
NameAndSettings name_and_settings(const std::string& what);

// Is it the name of a known workload, with settings behind it or not?
bool names_workload(const std::string& what);

// From the text of a workload file; `name` is for messages, and the model's name where the text has none.
TrainingJob parse_training_job(const std::string& text, const std::string& name);
// From the text of a Hugging Face config.json.
TrainingJob parse_hugging_face_config(const std::string& json, const std::string& name);

// Changes one setting: "batch=2", "model.layers=4". Throws UsageError naming the nearest key.
void set(TrainingJob& job, const std::string& assignment);
// Several, which need to hold together only at the end.
void set_all(TrainingJob& job, const std::vector<std::string>& assignments);

}  // namespace memwall
