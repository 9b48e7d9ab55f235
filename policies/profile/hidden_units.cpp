#include "policies/profile/hidden_units.h"

#include <fmt/format.h>

#include "policies/profile/plan_estimate.h"
#include "sim/human_text.h"

namespace memwall {
namespace {

std::string change(Time time, Time without) {
  const double share = static_cast<double>((time - without).count()) / static_cast<double>(without.count());
  return fmt::format("{:+.2f} %", 100 * share);
}

}  // namespace

HiddenUnits hidden_units(const StepProfile& profile, const Pricer& pricer, std::size_t units,
                         const std::function<MemoryPlan(std::size_t)>& plan_of) {
  HiddenUnits found;
  found.of = units;
  found.without = found.with = profile.step_time();
  const Time latest = found.without + found.without / kToleratedParts;
  std::size_t too_many = units + 1;
  for (std::size_t next = units; found.units + 1 < too_many; next = found.units + (too_many - found.units) / 2) {
    const Time end = simulate_plan(profile, plan_of(next), pricer).result.end;
    if (end <= latest) {
      found.units = next;
      found.with = end;
    } else {
      too_many = next;
      found.more = next;
      found.with_more = end;
    }
  }
  return found;
}

std::string HiddenUnits::sentence(const std::string& word, const std::string& plural) const {
  std::string text;
  if (units == 0)
    text =
        fmt::format("none of {} hides: the step takes {} without", counted_text(of, word, plural), human_time(without));
  else
    text = fmt::format("{} of {} hide{}: the step takes {} with {}, {} without ({})",
                       units == of ? "all" : fmt::format("{}", units), counted_text(of, word, plural),
                       units == 1 ? "s" : "", human_time(with), by_number(units, "it", "them"), human_time(without),
                       change(with, without));
  if (more > 0)
    text += fmt::format(", {} with {} ({})", human_time(with_more),
                        units > 0   ? "one more"
                        : more == 1 ? "one"
                                    : fmt::format("the first {}", more),
                        change(with_more, without));
  return text;
}

}  // namespace memwall
