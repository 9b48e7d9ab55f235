// A memory plan's file as it stands, for who has not its trace at hand: numbers of storages and ops, and beside them
// what the file says for people and for programs that train.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/policy/applied_policy.h"
#include "sim/policy/memory_plan.h"
#include "sim/policy/plan_realization.h"
#include "traces/plan/plan_expectation.h"
#include "traces/plan/plan_step.h"

namespace memwall {

// What is said of a decision besides what it is. Another program may leave any of it out: "" and nothing then.
struct DecisionNotes {
  std::string label, kind, producer, module;
  bool made_again = false;  // a re-run brings it back
  std::optional<Bytes> bytes{};
};

struct PlanDocument {
  std::string made_by;
  // The program that it is for.
  std::string trace;
  std::uint64_t ops = 0, storages = 0;
  std::string fingerprint;  // 16 hexadecimal digits

  MemoryPlan plan;                                                  // without TransferStyle::tier_class
  std::vector<DecisionNotes> notes;                                 // of MemoryPlan::storages
  std::vector<std::map<std::string, std::uint64_t>> rerun_modules;  // of MemoryPlan::reruns: ops by module
  std::optional<PlanRealization> realization{};
  std::optional<PlanExpectation> expected{};
  std::vector<AppliedPolicy> policies{};  // empty: the file does not say
  PlanStep step{};
};

// Is the file a memory plan? By its content: a JSON object that begins with "format" and the name of the format. Never
// throws.
bool is_plan(const std::filesystem::path& path);

// Throws InputError naming file, place in it, what was found and what was expected, where it is no plan or of another
// version.
PlanDocument read_plan_document(const std::filesystem::path& path);

}  // namespace memwall
