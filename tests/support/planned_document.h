// Plans as files hold them, made by hand: which policies, which blocks.
#pragma once

#include <string>
#include <vector>

#include "traces/plan/plan_document.h"

namespace memwall {

inline AppliedPolicy zero(std::int64_t stage) {
  return {"zero",
          {{"stage", stage},
           {"ranks", std::int64_t{8}},
           {"bucket_bytes", std::int64_t{26'214'400}},
           {"overlap", true},
           {"prefetch", true},
           {"reuse_distance", std::int64_t{0}}}};
}

inline AppliedPolicy offload(std::vector<std::string> what, const std::string& to = "host") {
  return {"offload",
          {{"what", std::move(what)},
           {"to", to},
           {"pinned", std::string("auto")},
           {"min_bytes", std::int64_t{1'048'576}},
           {"fraction", std::int64_t{1}},
           {"hides", false},
           {"cpu_adam", std::string("auto")}}};
}

inline AppliedValue setting(int number) { return std::int64_t{number}; }
inline AppliedValue setting(const char* word) { return std::string(word); }

// A setting by name: {"layers", 4}, {"spread", "even"}.
struct GivenSetting {
  GivenSetting(std::string key, int number) : name(std::move(key)), value(setting(number)) {}
  GivenSetting(std::string key, const char* word) : name(std::move(key)), value(setting(word)) {}
  std::string name;
  AppliedValue value;
};

inline AppliedPolicy checkpoint(const std::vector<GivenSetting>& given = {}) {
  AppliedPolicy policy{"checkpoint",
                       {{"mode", std::string("auto")},
                        {"every", std::int64_t{0}},
                        {"modules", std::string("none")},
                        {"ops", std::string("none")},
                        {"fraction", std::int64_t{1}},
                        {"layers", std::string("all")},
                        {"hides", false},
                        {"spread", std::string("first")},
                        {"early_stop", true},
                        {"last", std::string("recompute")}}};
  for (const GivenSetting& each : given)
    for (auto& [name, value] : policy.settings)
      if (name == each.name) value = each.value;
  return policy;
}

// Of 8 samples of 1024 tokens, bf16 under autocast; decides nothing of its own.
inline PlanDocument planned(std::vector<AppliedPolicy> policies) {
  PlanDocument document;
  document.made_by = "a test";
  document.policies = std::move(policies);
  document.step = {8, 8192, "bf16", "fp32"};
  document.realization = PlanRealization{.forwards = 1};
  return document;
}

inline PlanDocument with_units(std::vector<std::vector<std::string>> units, std::vector<AppliedPolicy> policies) {
  PlanDocument document = planned(std::move(policies));
  document.plan.storages.push_back({.storage = 1, .copies = {}, .drops = {}, .fetches = {}, .updates = {}});
  document.notes.emplace_back();
  document.realization->recompute.push_back({std::move(units)});
  return document;
}

// Units of h.0, h.1 and so on, each alone.
inline PlanDocument blocks(int count, std::vector<AppliedPolicy> policies) {
  std::vector<std::vector<std::string>> units;
  for (int i = 0; i < count; ++i) units.push_back({"h." + std::to_string(i)});
  return with_units(std::move(units), std::move(policies));
}

// The last of every `step`, `count` of them.
inline PlanDocument nth_blocks(int step, int count, std::vector<AppliedPolicy> policies) {
  std::vector<std::vector<std::string>> units;
  for (int i = 1; i <= count; ++i) units.push_back({"h." + std::to_string(i * step - 1)});
  return with_units(std::move(units), std::move(policies));
}

inline PlanDocument grouped_blocks(int count, int size, std::vector<AppliedPolicy> policies) {
  std::vector<std::vector<std::string>> units;
  for (int i = 0; i < count; ++i) {
    if (i % size == 0) units.emplace_back();
    units.back().push_back("h." + std::to_string(i));
  }
  return with_units(std::move(units), std::move(policies));
}

}  // namespace memwall
