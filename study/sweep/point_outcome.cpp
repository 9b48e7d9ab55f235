#include "study/sweep/point_outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

#include "sim/error.h"
#include "study/sweep/outcome_fields.h"
#include "traces/run/analysis/verdict.h"

namespace memwall {
namespace {

constexpr std::array<std::string_view, 8> kFolded = {"fits",
                                                     "step_time_s",
                                                     "total_s",
                                                     "samples_per_s",
                                                     "tokens_per_s",
                                                     "peak_allocated_bytes",
                                                     "peak_reserved_bytes",
                                                     "missing_bytes"};

// As quick_fields() has them, in its order.
PointRecord folded_record(const FoldedFigures& f, bool needs_all) {
  const auto seconds = [](Duration time) { return static_cast<double>(time.count()) / 1e12; };
  const auto bytes = [](Bytes b) { return static_cast<double>(b); };
  const double per_second = 1.0 / seconds(f.step_time);
  PointRecord record{.fields = {{"fits", f.missing == 0 ? 1 : 0},
                                {"step_time_s", seconds(f.step_time)},
                                {"total_s", seconds(f.total)},
                                {"samples_per_s", f.samples_per_step * per_second},
                                {"tokens_per_s", f.tokens_per_step * per_second},
                                {"peak_allocated_bytes", bytes(f.peak_allocated)},
                                {"peak_reserved_bytes", bytes(f.peak_reserved)},
                                {"missing_bytes", bytes(f.missing)},
                                {"folded", 1}},
                     .has_all = needs_all};
  for (const auto& [time_class, time] : f.path)
    record.fields.emplace_back("critical_path." + std::string(to_string(time_class)) + "_s", seconds(time));
  return record;
}

}  // namespace

bool is_folded_field(std::string_view name) { return std::ranges::find(kFolded, name) != kFolded.end(); }

PointRecord failed_point(const char* cause, const std::exception& error) {
  return {.error = error.what(), .cause = cause};
}

PointRecord point_outcome(Study& study, const Scenario& scenario, const PointSettings& settings) {
  try {
    if (settings.folded != nullptr && FoldedScenarios::takes(study, scenario))
      if (const auto figures = settings.folded->figures(scenario, settings.needs_all))
        return folded_record(*figures, settings.needs_all);
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
