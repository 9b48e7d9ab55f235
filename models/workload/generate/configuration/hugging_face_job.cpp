// The config.json that comes with a model of Hugging Face's transformers: its family reads it
// (hugging_face_families.h); keys that do not change what a training step does are passed over.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "models/workload/generate/configuration/hugging_face_families.h"
#include "models/workload/generate/configuration/workload_limits.h"
#include "sim/error.h"

namespace memwall {
namespace {

const HuggingFaceFamilies& hugging_face_families() {
  static const HuggingFaceFamilies families = [] {
    HuggingFaceFamilies all;
    add_llama_families(all);
    add_gemma_families(all);
    add_gpt_families(all);
    add_encoder_families(all);
    add_vision_families(all);
    return all;
  }();
  return families;
}

// What the file says of the type of its parameters is how they are stored: a program may train them in another.
void note_storage(const HuggingFaceConfig& c, TrainingJob& job) {
  const std::string type = c.text("dtype", c.text("torch_dtype", "bfloat16"));
  if (type != "bfloat16")
    job.notes.push_back(
        fmt::format("The file stores parameters as {:.60}; how they are trained is the recipe's: bf16 unless "
                    "precision= says otherwise.",
                    type));
  if (c.has("quantization_config")) job.notes.push_back("The quantization of the file is not generated.");
}

std::string name_of(const HuggingFaceConfig& config, const std::string& type) {
  const std::string name = config.text("_name_or_path", "");
  const bool plain = !name.empty() && name.size() <= 200 && name.find_first_of("\n\r") == std::string::npos;
  return plain ? name : type;
}

}  // namespace

TrainingJob parse_hugging_face_config(const std::string& json, const std::string& name) {
  const HuggingFaceConfig config(json, name);
  const std::string type = config.text("model_type", "");
  const HuggingFaceFamilies& families = hugging_face_families();
  std::vector<std::string> known;
  for (const auto& [key, reader] : families) known.push_back(key);
  if (type.empty()) config.fail(fmt::format("there is no \"model_type\"; expected one of {}", fmt::join(known, ", ")));
  const auto reader = families.find(type);
  if (reader == families.end()) {
    const std::string near = type.size() > 60 ? "" : nearest_name(type, known);
    config.fail(fmt::format(
        "the model_type \"{:.60}\" is not known{}; expected one of {}, or describe the model in a .textproto", type,
        near.empty() ? "" : fmt::format(" (nearest: \"{}\")", near), fmt::join(known, ", ")));
  }
  TrainingJob job;
  job.model.name = name_of(config, type);
  reader->second(config, job);
  note_storage(config, job);
  if (const std::string why = contradiction(job); !why.empty()) config.fail(why);
  return job;
}

}  // namespace memwall
