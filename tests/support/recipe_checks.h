// What tests of policies in policies/recipe ask: is a rewritten step the step of the changed program?
#pragma once

#include <string>

#include "models/workload/generate/configuration/model.h"
#include "models/workload/generate/configuration/recipe.h"
#include "sim/trace/trace.h"

namespace memwall {

// Two samples, in a precision; all else by default.
inline Recipe recipe_in(Precision precision) {
  Recipe r;
  r.batch = 2;
  r.precision = precision;
  return r;
}

inline constexpr const char* kRecipeMachine = "h100-sxm-80gb";  // which has fp8

// A generated step, modelled for a machine: every op with its times.
Trace modelled_step(const Model& model, const Recipe& recipe, const char* machine = kRecipeMachine);

// After the policy, on the same machine. Throws UsageError where it is refused.
Trace recipe_rewritten(const Trace& trace, const std::string& policy, const char* machine = kRecipeMachine);

// "" where both have the same ops in the same order, each with the same fields, names, times and uses, of storages with
// the same bytes, kind, place, stream, label and shape; else where they differ first. Numbers of storages may differ.
// Storages that live before the step and that no op uses are compared by what they are.
//
// Calls::may_wait: a call of the framework without a kernel (a view) is counted with the next op of its pass or the one
// behind that, as a program that adds ops between does; in all they are as many.
enum class Calls { stand, may_wait };
std::string step_difference(const Trace& found, const Trace& expected, Calls calls = Calls::stand);

}  // namespace memwall
