// A training framework's configuration as part of a scenario: its policies stand before the user's, its settings go to
// a generated step.
#pragma once

#include <string>
#include <vector>

#include "models/workload/frameworks/framework_job.h"
#include "study/scenario.h"

namespace memwall {

// Changes `scenario`; returns sentences for people: what the file became, what was left out, which keys are unknown.
// Without a step the file's network is the step. What the step's own text says ("llama3-8b:batch=2") stands. A capture
// keeps its batch, types and optimizer. Throws UsageError where there is no step.
std::vector<std::string> take_framework_job(const FrameworkJob& job, Framework framework, Scenario& scenario);

}  // namespace memwall
