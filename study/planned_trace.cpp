#include "study/planned_trace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <stdexcept>

#include "policies/plan/plan_check.h"
#include "policies/plan/plan_writer.h"
#include "policies/plan/staging_copies.h"
#include "policies/profile/latest_safe.h"
#include "sim/error.h"
#include "sim/human_text.h"
#include "sim/trace/dataflow_note.h"
#include "sim/trace/ranks.h"
#include "sim/trace/rendezvous.h"
#include "sim/trace/trace_check.h"
#include "traces/plan/plan_file.h"

namespace memwall {
namespace {

void require_plannable(const Trace& trace) {
  if (!trace.knowledge.allocations || !trace.knowledge.dataflow)
    throw UsageError(
        fmt::format("Trace '{}' does not know {}; a memory plan needs both. {}memwall inspect says how to "
                    "capture it.",
                    trace.name, trace.knowledge.allocations ? "what its ops use" : "what its ops allocate",
                    why_no_dataflow(trace).empty() ? "" : why_no_dataflow(trace) + " "));
}

// A plan that starts from copies of the step before is of no first step.
std::string text_of_held(const MemoryPlan& plan, const Trace& trace) {
  std::size_t storages = 0;
  Bytes bytes = 0;
  for (const StorageDecision& d : plan.storages) {
    if (d.held == StorageDecision::kDevice) continue;
    ++storages;
    bytes += trace.storages[d.storage].bytes;
  }
  if (storages == 0) return "";
  return fmt::format(
      "plan: a step of many: the step before has left copies of {} ({}). The first step has none, copies them before "
      "it "
      "drops them, and takes longer.",
      counted_text(storages, "storage"), human_bytes(bytes));
}

MemoryPlan issued(MemoryPlan plan, const std::filesystem::path& path, const Trace& trace, const Dataflow& flow,
                  const Machine& machine) {
  plan = issued_latest_safe(std::move(plan), StepProfile(trace, machine));
  if (const std::vector<std::string> problems = check_plan(plan, trace, flow); !problems.empty())
    throw std::logic_error("an error of memwall itself, which your input did not cause; please report it: plan '" +
                           path.string() + "' cannot be carried out once its fetches are issued: " + problems.front());
  return plan;
}

// REQUIRES: the trace holds one rank.
Trace planned_program(const Trace& trace, const std::filesystem::path& path, const Machine& machine,
                      const Pricer& pricer, const PlanRestriction& restriction) {
  require_plannable(trace);
  MemoryPlan plan = read_plan(path, trace, machine);
  const Dataflow flow(trace);
  if (const std::vector<std::string> problems = check_plan(plan, trace, flow); !problems.empty())
    throw InputError(fmt::format("{}: the plan cannot be carried out. {}", path.string(), fmt::join(problems, " ")));
  if (has_latest_safe(plan)) plan = issued(std::move(plan), path, trace, flow, machine);
  RestrictedPlan executed = restricted(restriction, std::move(plan), trace, "Plan " + path.filename().string());
  plan = std::move(executed.plan);
  TraceEdit edit(trace, machine.host);
  const WrittenPlan written = write_plan(plan, flow, pricer, edit);
  give_back_reserved(edit);
  Trace planned = std::move(edit).apply();
  require_made_sound(planned, "plan '" + path.string() + "'");
  planned.notes.push_back(
      fmt::format("plan {}: decisions about {}, {}; {} are copied out, {} back{}.", path.filename().string(),
                  counted_text(plan.storages.size(), "storage"), counted_text(plan.reruns.size(), "re-run"),
                  human_bytes(written.bytes_out), human_bytes(written.bytes_in),
                  trace.steps.size() > 1 ? fmt::format("; all {} steps together", trace.steps.size()) : ""));
  if (!executed.note.empty())
    planned.notes.push_back(fmt::format("plan {}: {}", path.filename().string(), executed.note));
  if (const std::string held = text_of_held(plan, trace); !held.empty()) planned.notes.push_back(held);
  return planned;
}

}  // namespace

Trace planned_trace(const Trace& trace, const std::filesystem::path& path, const Machine& machine, const Pricer& pricer,
                    const PlanRestriction& restriction) {
  if (rank_count(trace) == 1) return planned_program(trace, path, machine, pricer, restriction);
  const std::uint64_t first_free = first_free_rendezvous(trace);
  std::vector<RankProgram> ranks;
  for (std::uint16_t r = 0; r < rank_count(trace); ++r) {
    const Rank& rank = trace.rank_table[r];
    try {
      ranks.push_back({rank.number, planned_program(one_rank(trace, r), path, machine, pricer, restriction),
                       rank.stands_for, rank.chunks});
    } catch (const InputError& error) {
      throw InputError(fmt::format("Rank {} of {}: {}", rank.number, trace.name, error.what()));
    }
    if (!separate_rendezvous(ranks.back().trace, first_free))
      throw InputError(fmt::format("{}: the plan repeats collectives of several ranks more often than can be numbered.",
                                   path.string()));
  }
  Trace joined = joined_ranks(std::move(ranks));
  require_made_sound(joined, "joining the planned ranks");
  return joined;
}

}  // namespace memwall
