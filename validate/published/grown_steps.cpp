#include "validate/published/grown_steps.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <type_traits>

#include "models/workload/generate/configuration/workload_fields.h"

namespace memwall {
namespace {

template <class T>
std::string value_text(const T& value) {
  if constexpr (std::is_enum_v<T>)
    return fmt::format("{}", static_cast<int>(value));
  else if constexpr (std::is_same_v<T, std::optional<bool>>)
    return value ? value_text(*value) : "unsaid";
  else
    return fmt::format("{}", value);
}

}  // namespace

SimulatedStep GrownStep::at(std::int64_t passes) const {
  SimulatedStep s = few;
  const double longer = growth.at(passes) / s.seconds;
  s.seconds *= longer, s.low *= longer, s.high *= longer;
  s.low_fitted *= longer, s.high_fitted *= longer;
  s.seconds_at_peak *= static_cast<double>(passes) / static_cast<double>(growth.few);
  return s;
}

std::string job_text(const PublishedCase& one) {
  std::string text =
      fmt::format("{} {} {} {} {} {} {}", one.machine, fmt::join(one.settings, " "), one.alloc_conf,
                  fmt::join(one.policies, " "), one.constants.products, one.constants.network, one.constants.host);
  const auto add = [&text](std::string_view name, const auto& value) {
    if (name != "accumulation") text += fmt::format(" {}={}", name, value_text(value));
  };
  for_each_model_field(one.job.model, add);
  for_each_recipe_field(one.job.recipe, add);
  return text;
}

GrownStep GrownSteps::of(const PublishedCase& one, const std::function<GrownStep()>& grow) {
  std::promise<GrownStep> mine;
  std::shared_future<GrownStep> step;
  {
    const std::scoped_lock lock(mutex_);
    const auto [at, is_new] = steps_.try_emplace(job_text(one));
    if (is_new)
      at->second = mine.get_future().share();
    else
      step = at->second;
  }
  if (!step.valid()) {
    try {
      const GrownStep grown = grow();
      mine.set_value(grown);
      return grown;
    } catch (...) {
      mine.set_exception(std::current_exception());
      throw;
    }
  }
  const GrownStep known = step.get();
  const std::int64_t passes = one.job.recipe.accumulation;
  const bool holds = known.growth.seconds_per_pass > 0 ? known.growth.few <= passes : known.growth.few == passes;
  return holds ? known : grow();
}

}  // namespace memwall
