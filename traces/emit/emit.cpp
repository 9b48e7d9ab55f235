#include "traces/emit/emit.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/error.h"
#include "traces/emit/emitters.h"

namespace memwall {
namespace {

struct Framework {
  const char* name;
  Emission (*emit)(const PlanChoices&, const std::string& plan);
};

constexpr Framework kFrameworks[] = {{"deepspeed", emit_deepspeed},         {"fsdp2", emit_fsdp2},
                                     {"torchtitan-0.2.2", emit_torchtitan}, {"megatron", emit_megatron},
                                     {"transformers", emit_transformers},   {"accelerate", emit_accelerate},
                                     {"torchtune", emit_torchtune}};

[[noreturn]] void refuse_framework(const std::string& name) {
  const std::vector<std::string> known = emitted_frameworks();
  if (name.starts_with("torchtitan"))
    throw UsageError(
        fmt::format("--for \"{}\": expected torchtitan-0.2.2, whose settings are a TOML file; other "
                    "versions have other keys, and its main branch is set in Python.",
                    name));
  const std::string near = nearest_name(name, known);
  throw UsageError(fmt::format("--for \"{}\" is unknown{}; expected one of {}.", name,
                               near.empty() ? "" : fmt::format(" (nearest: \"{}\")", near), listed(known)));
}

}  // namespace

std::vector<std::string> emitted_frameworks() {
  std::vector<std::string> names;
  for (const Framework& framework : kFrameworks) names.emplace_back(framework.name);
  return names;
}

Emission emit(const PlanDocument& document, const EmitSettings& settings) {
  const auto* const found = std::find_if(std::begin(kFrameworks), std::end(kFrameworks),
                                         [&](const Framework& f) { return settings.framework == f.name; });
  if (found == std::end(kFrameworks)) refuse_framework(settings.framework);
  if (const std::string& type = settings.gradient_dtype;
      !type.empty() && type != "bf16" && type != "fp16" && type != "fp32")
    throw UsageError(fmt::format("--gradient-dtype \"{}\" is unknown; expected bf16, fp16 or fp32.", type));
  const PlanChoices choices = choices_of(document, settings.gradient_dtype);
  Emission emission = found->emit(choices, settings.plan);
  emission.left_out.insert(emission.left_out.begin(), choices.beyond.begin(), choices.beyond.end());
  return emission;
}

}  // namespace memwall
