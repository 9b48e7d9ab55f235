// Whatever policies people combine, on whatever step and machine: do they get a result or a sentence that tells them
// what is wrong with their request? A rewriter that makes an unsound trace throws std::logic_error, and is found here.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "models/hw/machine_file.h"
#include "models/workload/generate/configuration/workload_file.h"
#include "models/workload/generate/generate.h"
#include "sim/error.h"
#include "sim/policy/registry.h"
#include "study/study.h"
#include "tests/support/gpt_trace.h"

namespace memwall {
namespace MEMWALL_TEST_FILE {

Trace generated(const std::string& network, const std::vector<std::string>& settings) {
  TrainingJob job = load_training_job(network);
  set_all(job, settings);
  return generate_step(job.model, job.recipe);
}

const std::vector<std::string>& step_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = {"two_steps", "kept_gradients", "llama",  "llama_scaled", "gpt2",
                                    "vit",       "gemma2",         "pythia", "opt"};
    const auto generated_steps = static_cast<std::ptrdiff_t>(all.size());
    for (const char* folder : {"variants", "families"})
      for (const auto& entry :
           std::filesystem::directory_iterator(std::string(MEMWALL_SOURCE) + "/traces/samples/captures/" + folder))
        if (entry.path().extension() == ".gz") all.push_back(entry.path().string());
    std::sort(all.begin() + generated_steps, all.end());
    return all;
  }();
  return names;
}

// Small steps of every kind, read once: generated ones, and captures of programs that do what these do not.
Study& study_of_small_steps() {
  static Study study;
  static const bool added = [] {
    GptShape shape;
    shape.origin = Origin::modelled;
    shape.layers = 3;
    shape.hidden = 64;
    shape.steps = 2;
    study.add_step("two_steps", gpt_step(shape));
    shape.preexisting_gradients = true;
    study.add_step("kept_gradients", gpt_step(shape));
    const std::vector<std::string> small = {"layers=2", "batch=2", "sequence=64"};
    const auto with = [&](std::vector<std::string> more) {
      more.insert(more.begin(), small.begin(), small.end());
      return more;
    };
    study.add_step(
        "llama",
        generated("llama3-8b", with({"width=128", "heads=4", "key_value_heads=4", "inner=256", "vocabulary=512"})));
    study.add_step("llama_scaled", generated("llama3-8b", with({"precision=amp_fp16", "accumulation=2"})));
    study.add_step("gpt2", generated("gpt2-124m", with({"optimizer=adamw_8bit"})));
    study.add_step("gemma2", generated("gemma2-2b", with({"width=128", "heads=4", "key_value_heads=2", "head_size=32",
                                                          "inner=256", "vocabulary=512"})));
    study.add_step("pythia", generated("pythia-160m", with({"precision=amp_bf16", "accumulation=2"})));
    study.add_step("opt", generated("opt-125m", with({"attention=plain"})));
    study.add_step("vit", generated("vit-b16", {"layers=2", "batch=2"}));
    return true;
  }();
  RC_ASSERT(added);
  return study;
}

std::string any_of(const std::vector<std::string>& words) { return *rc::gen::elementOf(words); }

// One or more of `words`, joined as the command line has them.
std::string some_of(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words)
    if (*rc::gen::inRange(0, 3) == 0) text += (text.empty() ? "" : "+") + word;
  return text.empty() ? any_of(words) : text;
}

std::string random_value(const ParameterInfo& parameter) {
  const std::vector<std::string> tiers = {"host", "host", "host", "nvme", "nvme", "peer_hbm", "zram", "pim", "ssd"};
  std::vector<std::string> words = parameter.words;
  switch (parameter.type) {
    case ParameterType::choice:
      return any_of(words);
    case ParameterType::choices:
      return some_of(words);
    case ParameterType::flag:
      return any_of({"0", "1"});
    case ParameterType::integer: {
      const auto low = static_cast<std::int64_t>(parameter.range.low);
      const auto high = static_cast<std::int64_t>(std::min(parameter.range.high, parameter.range.low + 8));
      return std::to_string(*rc::gen::inRange(low, high + 1));
    }
    case ParameterType::number:
      return any_of({"0.25", "0.5", "1", "2"});
    case ParameterType::bytes:
      return any_of({"0", "1", "4KiB", "1MiB"});
    case ParameterType::bytes_or_share:
      return any_of({"1MB", "100MB", "10GB", "60%", "100%"});
    case ParameterType::tier:
      words.insert(words.end(), tiers.begin(), tiers.end());
      return any_of(words);
    case ParameterType::tiers:
      return any_of(tiers);
    case ParameterType::patterns:
      return some_of({"*", "*mlp*", "layers.0*", "*attention*", "aten::mm"});
    case ParameterType::program:
      return any_of({"no-such-planner", "true", "false"});
  }
  return "";
}

std::string random_call(const PolicyInfo& policy) {
  std::string text = policy.name;
  char between = ':';
  for (const ParameterInfo& parameter : policy.parameters) {
    const bool small_steps_need_it = parameter.name == "min_bytes";
    if (!parameter.required() && !small_steps_need_it && *rc::gen::inRange(0, 8) != 0) continue;
    text +=
        between + parameter.name + "=" + (small_steps_need_it ? any_of({"0", "1", "4KiB"}) : random_value(parameter));
    between = ',';
  }
  return text;
}

Scenario random_scenario() {
  Scenario scenario{.step = {any_of(step_names())}};
  scenario.machine = any_of({"a100-sxm-40gb", "h100-sxm-80gb", "gh200-480gb", "v100-sxm2-32gb",
                             std::string(MEMWALL_SOURCE) + "/tests/machines/near-memory.textproto"});
  std::vector<const PolicyInfo*> rewriters;
  for (const auto& [name, info] : policies())
    if (info.make_rewriter) rewriters.push_back(&info);
  for (int left = *rc::gen::inRange(1, 5); left > 0; --left)
    scenario.policies.push_back(random_call(**rc::gen::elementOf(rewriters)));
  if (*rc::gen::inRange(0, 3) == 0) scenario.pager = random_call(policy_of(PolicyKind::pager));
  if (*rc::gen::inRange(0, 3) == 0) scenario.settings.push_back("gpu.hbm.capacity=" + any_of({"1GB", "100MB", "8TB"}));
  if (*rc::gen::inRange(0, 3) == 0) scenario.repeat = 2;
  scenario.allocator = any_of({"pytorch", "ideal", "cuda_async"});
  return scenario;
}

RC_GTEST_PROP(Scenarios, EndInAResultOrInASentenceAboutTheRequest, ()) {
  const Scenario scenario = random_scenario();
  RC_LOG() << to_text(scenario) << '\n';
  Study& study = study_of_small_steps();
  try {
    const Run run = study.run(scenario, {.record = false}).run;
    RC_TAG("a result");
    RC_ASSERT(run.result.end > Time{});
    if (run.pager.empty()) RC_ASSERT(run.result.moves.empty());
  } catch (const UsageError& refused) {
    RC_TAG("a sentence");
    RC_ASSERT(std::string(refused.what()).size() > 30u);
  } catch (const InfeasibleError&) {
    RC_TAG("infeasible");
  }
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall
