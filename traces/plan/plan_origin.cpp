#include "traces/plan/plan_origin.h"

#include <type_traits>

namespace memwall {
namespace {

namespace dom = simdjson::dom;

void write_value(JsonText& json, const AppliedValue& value) {
  std::visit(
      [&](const auto& held) {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::vector<std::string>>) {
          json.begin_array();
          for (const std::string& item : held) json.value(item);
          json.end_array();
        } else {
          json.value(held);
        }
      },
      value);
}

AppliedValue read_value(const PlanJson& json, dom::element from, const std::string& at) {
  bool flag = false;
  std::int64_t whole = 0;
  double number = 0;
  std::string_view word;
  if (!from.get_bool().get(flag)) return flag;
  if (!from.get_int64().get(whole)) return whole;
  if (!from.get_double().get(number)) return number;
  if (!from.get_string().get(word)) return std::string(word);
  if (!from.is_array()) json.fail_of(from, at, "true, false, a number, a text or a list of texts");
  return json.texts(from, at);
}

double amount(const PlanJson& json, dom::object from, const char* key, const std::string& at) {
  if (!PlanJson::has(from, key)) return 0;
  double found = 0;
  const dom::element element = json.member(from, key, at);
  if (element.get_double().get(found) || !(found >= 0 && found <= 1e15))
    json.fail_of(element, PlanJson::inside(at, key), "a number from 0 to 1e15");
  return found;
}

std::string dtype(const PlanJson& json, dom::object from, const char* key, const std::string& at) {
  const std::string name = json.text_or_nothing(from, key, at);
  if (!name.empty() && name != "bf16" && name != "fp16" && name != "fp32")
    json.fail(PlanJson::inside(at, key), fmt::format("found \"{}\"; expected bf16, fp16 or fp32", name));
  return name;
}

}  // namespace

void write_policies(JsonText& json, const std::vector<AppliedPolicy>& policies) {
  if (policies.empty()) return;
  json.key("policies").begin_array();
  for (const AppliedPolicy& applied : policies) {
    json.begin_object().field("policy", applied.policy).key("settings").begin_object();
    for (const auto& [name, value] : applied.settings) write_value(json.key(name), value);
    json.end_object().end_object();
  }
  json.end_array();
}

void write_step(JsonText& json, const PlanStep& step) {
  if (step == PlanStep{}) return;
  json.key("step").begin_object();
  if (step.samples > 0) json.field("samples", step.samples);
  if (step.tokens > 0) json.field("tokens", step.tokens);
  if (!step.compute_dtype.empty()) json.field("compute_dtype", step.compute_dtype);
  if (!step.gradient_dtype.empty()) json.field("gradient_dtype", step.gradient_dtype);
  json.end_object();
}

std::vector<AppliedPolicy> read_policies(const PlanJson& json, dom::object root) {
  std::vector<AppliedPolicy> policies;
  if (!PlanJson::has(root, "policies")) return policies;
  json.each(root, "policies", "", [&](dom::object item, const std::string& at) {
    AppliedPolicy& applied = policies.emplace_back(AppliedPolicy{json.text(item, "policy", at)});
    const std::string here = PlanJson::inside(at, "settings");
    for (const auto [name, value] : json.object(json.member(item, "settings", at), here)) {
      const std::string setting(name);
      if (applied.find(setting) != nullptr)
        json.fail(here, fmt::format("\"{}\" stands there twice; expected each setting once", setting));
      applied.settings.emplace_back(setting, read_value(json, value, PlanJson::inside(here, setting.c_str())));
    }
  });
  return policies;
}

PlanStep read_step(const PlanJson& json, dom::object root) {
  if (!PlanJson::has(root, "step")) return {};
  const std::string at = "step";
  const dom::object from = json.object(json.member(root, "step", ""), at);
  return {amount(json, from, "samples", at), amount(json, from, "tokens", at), dtype(json, from, "compute_dtype", at),
          dtype(json, from, "gradient_dtype", at)};
}

}  // namespace memwall
