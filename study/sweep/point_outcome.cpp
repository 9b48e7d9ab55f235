#include "study/sweep/point_outcome.h"

#include <fmt/format.h>

#include "sim/error.h"
#include "study/sweep/outcome_fields.h"
#include "traces/run/analysis/verdict.h"

namespace memwall {

PointRecord failed_point(const char* cause, const std::exception& error) {
  return {.error = error.what(), .cause = cause};
}

PointRecord point_outcome(Study& study, const Scenario& scenario, const PointSettings& settings) {
  try {
    const Outcome outcome = study.run(scenario, {.record = false, .settle_writes = true});
    const Trace& trace = *outcome.run.trace;
    if (asks_first(trace.completeness) && !settings.accept_gaps)
      throw InputError(fmt::format("{} To see what its records give all the same: --accept-gaps.",
                                   completeness_sentence(trace.completeness, trace.completeness_reason)));
    return {.fields = (settings.needs_all ? all_fields(outcome.run) : quick_fields(outcome.run)).all(),
            .has_all = settings.needs_all};
  } catch (const UsageError& error) {
    return failed_point("usage", error);
  } catch (const InputError& error) {
    return failed_point("input", error);
  } catch (const InfeasibleError& error) {
    return failed_point("infeasible", error);
  } catch (const std::exception& error) {  // of memory, of a file system: this point's, not the study's
    return failed_point("internal", error);
  }
}

}  // namespace memwall
