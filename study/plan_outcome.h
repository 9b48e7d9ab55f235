// A memory plan and what comes of it: what its file says beside the decisions, and whether a run bears that out.
#pragma once

#include <filesystem>
#include <string>

#include "sim/policy/registry.h"
#include "traces/plan/plan_expectation.h"
#include "traces/run/run.h"

namespace memwall {

PlanExpectation expectation_of(const Run& run);

// The plan's file: with the names that a program can act on, and the figures of `run`, in which it was carried out.
std::string plan_text(const PlannedStep& planned, const Run& run);

// A sentence on what of `run`, in which the plan of this file was carried out, differs from what the file expects; ""
// where nothing does, or the file expects nothing. Throws InputError where the file is no plan.
std::string plan_difference(const std::filesystem::path& plan, const Run& run);

}  // namespace memwall
