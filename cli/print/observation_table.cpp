#include "cli/print/observation_table.h"

#include <fmt/format.h>

#include "cli/print/format.h"
#include "cli/print/table_cells.h"

namespace memwall {
namespace {

std::string memory_sentence(const Observation& o, const std::string& budget, Bytes planned_for) {
  const bool reserved = o.measured.peak_reserved > 0;
  const Bytes measured = reserved ? o.measured.peak_reserved : o.measured.peak_allocated;
  const Bytes simulated = reserved ? o.simulated.peak_reserved : o.simulated.peak_allocated;
  const char* what = reserved ? "reserved" : "allocated";
  if (measured == 0) return "What was measured says nothing of memory: the budget stays as it was asked for.";
  const std::string both =
      fmt::format("At the peak {} were {} as measured, {} as simulated without a plan: ", human_bytes(measured), what,
                  human_bytes(simulated));
  if (o.more_memory() > 0)
    return both + fmt::format("{} more, by which the budget is lowered from {} to {}.", human_bytes(o.more_memory()),
                              budget, human_bytes(planned_for));
  if (o.more_memory() == 0) return both + "the budget stays as it was asked for.";
  return both + fmt::format("{} less; the budget of {} is not raised by that.", human_bytes(-o.more_memory()), budget);
}

std::string time_sentence(const Observation& o) {
  if (o.measured.step_time.count() <= 0)
    return "What was measured says nothing of the step's time: times stay as simulated.";
  return fmt::format(
      "A step took {} as measured ({}), {} as simulated without a plan: kernels and the host's work are "
      "taken to last {:.4g} times as long.",
      human_time(o.measured.step_time), counted_text(o.measured.steps, "step"), human_time(o.simulated.step_time),
      o.time_ratio());
}

// What differs by half has often another cause than the simulation.
std::string doubt(const Observation& o) {
  const auto is_far = [](double measured, double simulated) {
    return measured > 0 && simulated > 0 && (measured > 1.5 * simulated || simulated > 1.5 * measured);
  };
  if (is_far(static_cast<double>(o.measured.peak_reserved), static_cast<double>(o.simulated.peak_reserved)) ||
      is_far(to_seconds(o.measured.step_time), to_seconds(o.simulated.step_time)))
    return "That is far from what is simulated: was it this step, with this batch, on this GPU?";
  return "";
}

}  // namespace

std::vector<std::string> observation_sentences(const Observation& o, const std::string& budget, Bytes planned_for) {
  return {memory_sentence(o, budget, planned_for), time_sentence(o), doubt(o)};
}

Table observation_table(const Observation& o) {
  Table t{.name = "observed",
          .title = "What was measured (" + o.measured.kind + "), and what is simulated without a plan",
          .columns = {"what", "measured", "simulated"},
          .headings = {"", "measured", "simulated"},
          .rows = {}};
  const auto size = [](Bytes bytes) { return bytes > 0 ? bytes_cell(bytes) : unrecorded_cell(); };
  const auto time = [](Duration d) { return d.count() > 0 ? time_cell(d) : unrecorded_cell(); };
  t.rows.push_back(
      {cell("peak, reserved", "peak_reserved_bytes"), size(o.measured.peak_reserved), size(o.simulated.peak_reserved)});
  t.rows.push_back({cell("peak, allocated", "peak_allocated_bytes"), size(o.measured.peak_allocated),
                    size(o.simulated.peak_allocated)});
  t.rows.push_back({cell("step time", "step_time_s"), time(o.measured.step_time), time(o.simulated.step_time)});
  return t;
}

}  // namespace memwall
