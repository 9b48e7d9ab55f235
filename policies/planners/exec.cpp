// A program of the user's plans: it gets the step's profile as JSON (PROFILE.md) on standard input and prints a plan
// (traces/plan/FORMAT.md) on standard output. policies/planners/example_planner.py is one.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "policies/plan/plan_check.h"
#include "policies/planners/exec_profile.h"
#include "policies/planners/exec_program.h"
#include "policies/planners/planner.h"
#include "sim/error.h"
#include "traces/plan/plan_file.h"

namespace memwall {
namespace {

MemoryPlan plan_in(const std::string& text, const std::string& what, const StepProfile& profile) {
  try {
    return plan_of_text(text, what, profile.trace(), profile.machine());
  } catch (const InputError& error) {  // of no file: of who was asked
    throw UsageError(error.what());
  }
}

// Nothing that is not a plan for this step, and can be carried out, comes back.
MemoryPlan printed_plan(const std::string& program, const ExecLimits& limits, const StepProfile& profile,
                        const Budget& budget) {
  const std::string text = output_of_program(program, profile_document(profile, budget.device), limits);
  const std::string what = "What program '" + program + "' printed";
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    throw UsageError(what + ": it is empty; expected a memory plan in JSON (traces/plan/FORMAT.md).");
  MemoryPlan plan = plan_in(text, what, profile);
  if (const std::vector<std::string> problems = check_plan(plan, profile.trace(), profile.flow()); !problems.empty())
    throw UsageError(fmt::format("{}: the plan cannot be carried out. {}", what, fmt::join(problems, " ")));
  return plan;
}

const RegisterPlanner registered_exec{
    {.name = "exec",
     .sentence = "asks a program of yours for a memory plan",
     .is_user_code = true,
     .parameters =
         {program(
              "program", kRequired,
              "gets the step's profile on standard input and prints a plan; its name may be left out: exec:./mine.py."),
          number("timeout", 60, {0.01, 86400}, "s", "for the program, each time that it is asked."),
          bytes("memory", "4GiB", 1 << 20, "of addresses, for the program.")},
     .make = [](const PolicyArguments& arguments) -> Planner {
       const std::string name = arguments.text("program");
       ExecLimits limits;
       limits.time = std::chrono::duration<double>(arguments.number("timeout"));
       limits.memory = arguments.bytes("memory");
       return [name, limits](const StepProfile& profile, const Budget& budget, const Machine&, const Pricer&) {
         return printed_plan(name, limits, profile, budget);
       };
     }}};

}  // namespace
}  // namespace memwall
