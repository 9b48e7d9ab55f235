// The answer of an explanation, in sentences.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cli/print/explanation_tables.h"
#include "cli/print/format.h"
#include "sim/trace/kind_words.h"
#include "sim/words.h"

namespace memwall {
namespace {

// Below this, an elasticity has no sentence of its own.
constexpr double kWorthAWord = 0.02;
constexpr std::size_t kNamedKinks = 3;

// "0.58 % shorter", "no different".
std::string change_words(double percent, const char* more, const char* less) {
  if (std::abs(percent) < 0.0005) return "no different";
  return fmt::format("{:.3g} % {}", std::abs(percent), percent > 0 ? more : less);
}

// Two parts do not add up to more than the whole.
std::string path_share(double share) {
  return share > 0.99 && share < 0.9995 ? fmt::format("{:.1f} %", 100 * share) : share_words(share);
}

std::string time_sentence(const Explanation& e) {
  std::string text = fmt::format("A step takes {}", human_time(e.here.step_time));
  if (e.path.empty()) return text + ".";
  Duration all{};
  for (const auto& [reason, time] : e.path) all += time;
  const auto& [largest, time] = e.path.front();
  text += fmt::format("; {} of its critical path is {}", path_share(to_seconds(time) / to_seconds(all)),
                      reason_words(std::string(to_string(largest))));
  if (e.path.size() > 1)
    text += fmt::format(", {} is {}", path_share(to_seconds(e.path[1].second) / to_seconds(all)),
                        reason_words(std::string(to_string(e.path[1].first))));
  return text + ".";
}

std::string folded_sentence(const Explanation& e) {
  if (e.folded_step_time <= 0) return "";
  return fmt::format("Numbers are varied with folded passes, which gives {} as they are.",
                     human_time(e.folded_step_time));
}

std::string fit_sentence(const Explanation& e) {
  if (e.here.fits) return "";
  return fmt::format("It does not fit: {} are missing in {}. All times here take memory as unlimited.",
                     human_bytes(e.missing), e.missing_in == "budget" ? "its budget" : e.missing_in);
}

// Counts go by one, not by percent: they stand in the table alone.
bool is_of_machine_file(const VariedNumber& number) {
  return (number.kind == NumberKind::machine || number.kind == NumberKind::way) && !number.is_whole;
}

// "gpu.hbm.bandwidth", "the bandwidth from host to hbm".
std::string subject_of(const VariedNumber& number) {
  if (number.kind != NumberKind::way) return number.name;
  return fmt::format("the bandwidth {}{}", number.name.starts_with("between ") ? "" : "from ", number.name);
}

// Is it one of several numbers that change together, of which the way is spoken of?
bool is_part_of_way(const VariedNumber& number, const Explanation& e) {
  return std::ranges::any_of(e.sensitivities, [&](const Sensitivity& way) {
    return std::ranges::find(way.number.parts, number.name, &VariedNumber::name) != way.number.parts.end();
  });
}

// "1 % more of it makes a step 0.6 % shorter, 1 % less 0.61 % longer".
std::string both_sides(const Elasticity& step) {
  std::vector<std::string> sides;
  if (step.above) sides.push_back("1 % more of it makes a step " + change_words(*step.above, "longer", "shorter"));
  if (step.below)
    sides.push_back(fmt::format("1 % less{} {}", step.above ? "" : " of it makes a step",
                                change_words(-*step.below, "longer", "shorter")));
  return fmt::format("{}", fmt::join(sides, ", "));
}

// Of those that `is_asked`, the one with the largest elasticity of the step time; null = none.
template <class Asked>
const Sensitivity* strongest(const Explanation& e, const Asked& is_asked) {
  const auto found = std::ranges::find_if(
      e.sensitivities, [&](const Sensitivity& s) { return is_asked(s.number) && !s.step_time.is_zero(); });
  return found == e.sensitivities.end() ? nullptr : &*found;
}

// Where what the step hangs on is no number of the machine: measured durations, the host's own time.
std::string scale_elasticity_sentence(const Explanation& e) {
  static const std::map<std::string, std::string> kParts = {
      {"kernels", "kernels"}, {"copies", "copies"}, {"host", "time of the host"}, {"collectives", "collectives"}};
  const Sensitivity* const scale =
      strongest(e, [](const VariedNumber& number) { return number.kind == NumberKind::scale; });
  const Sensitivity* const number = strongest(e, is_of_machine_file);
  if (scale == nullptr || !scale->step_time.below) return "";
  const double percent = *scale->step_time.below;
  if (number != nullptr && std::abs(percent) < 2 * std::abs(number->step_time.central.value_or(0))) return "";
  const auto part = kParts.find(scale->number.parameter);
  return fmt::format("1 % less {} makes a step {}: no number of the machine does as much.",
                     part == kParts.end() ? scale->number.name : part->second,
                     change_words(-percent, "longer", "shorter"));
}

std::string elasticity_sentence(const Explanation& e) {
  if (const Sensitivity* s = strongest(e, is_of_machine_file))
    return fmt::format("Of the machine's numbers the step time depends most on {} ({}): {}.", subject_of(s->number),
                       amount_text(s->number.value, s->number.unit), both_sides(s->step_time));
  return e.idle.empty() ? ""
                        : fmt::format("No number of the machine that was varied by {} changes the step time.",
                                      share_words(e.share));
}

std::string policy_sentence(const Explanation& e) {
  const Sensitivity* s = strongest(e, [](const VariedNumber& number) {
    return number.kind != NumberKind::machine && number.kind != NumberKind::way && number.kind != NumberKind::scale &&
           !number.is_whole;
  });
  if (s == nullptr) return "";
  return fmt::format("Of what policies were given it depends most on {} ({}): {}.", s->number.name,
                     amount_text(s->number.value, s->number.unit), both_sides(s->step_time));
}

// What is just enough: less of it would hurt, and more gives nothing; or the other way round.
std::string kink_sentence(const Explanation& e) {
  std::vector<std::string> just_enough;
  for (const Sensitivity& s : e.sensitivities) {
    const double below = s.step_time.below.value_or(0), above = s.step_time.above.value_or(0);
    const bool is_kink = -below >= kWorthAWord && std::abs(above) < 0.1 * -below;
    if (is_kink && is_of_machine_file(s.number) && !is_part_of_way(s.number, e) && s.step_time.above &&
        just_enough.size() < kNamedKinks)
      just_enough.push_back(s.number.name);
  }
  if (just_enough.empty()) return "";
  return fmt::format("Less of {} would make the step longer, while more of {} alone gives (nearly) nothing.",
                     enumerated(just_enough), by_number(just_enough.size(), "it", "each"));
}

// "Faster kernels make a step shorter until their time is 42 % of what it is now".
std::string scale_sentence(const NextBound& b) {
  static const std::map<std::string, std::string> kParts = {{"kernels", "Faster kernels make {} their time"},
                                                            {"copies", "Faster copies make {} their time"},
                                                            {"host", "A faster host makes {} its time"},
                                                            {"collectives", "Faster collectives make {} their time"}};
  const auto part = kParts.find(b.number.parameter);
  const std::string verb = part == kParts.end() ? b.number.name + " makes {} its time" : part->second;
  const std::string head = fmt::format("{} is {:.3g} % of what it is now",
                                       fmt::format(fmt::runtime(verb), "a step shorter until"), 100 * b.value);
  const std::string step = human_time(b.step_time);
  if (b.stop == StopReason::other_reason)
    return fmt::format("{}, where a step takes {} and the largest part of the critical path is {}.", head, step,
                       reason_words(b.reason_then));
  if (b.stop == StopReason::little_left)
    return fmt::format("{}, where a step takes {}; beyond that little is left to gain.", head, step);
  return fmt::format("{} and further; a step takes {} there.", head, step);
}

std::string next_sentence(const NextBound& b) {
  if (std::abs(b.elasticity) < kWorthAWord) return "";
  if (b.number.kind == NumberKind::scale) return scale_sentence(b);
  const double ratio = b.value / b.number.value;
  const std::string value =
      fmt::format("{}, {}", amount_text(b.value, b.number.unit),
                  b.more ? fmt::format("{:.3g} times as much", ratio) : fmt::format("{:.3g} % of it", 100 * ratio));
  const std::string step = human_time(b.step_time);
  std::string text = fmt::format("{} of {}", b.more ? "More" : "Less", subject_of(b.number));
  if (b.stop == StopReason::other_reason)
    text += fmt::format(
        " helps until the largest part of the critical path is {}, no longer {} ({}; a step takes {} there)",
        reason_words(b.reason_then), reason_words(b.reason_now), value, step);
  else if (b.stop == StopReason::little_left)
    text += fmt::format(
        " helps {} to {}, where a step takes {}: from there on it gives less than a twentieth of what it "
        "gives now",
        b.more ? "up" : "down", value, step);
  else
    text += fmt::format(" helps as far as {} ({}; a step takes {} there)",
                        b.stop == StopReason::not_allowed ? "it goes" : "it was looked at", value, step);
  if (b.overtaken_at)
    text += fmt::format("; from {} on {} counts for more", amount_text(*b.overtaken_at, b.number.unit), b.overtaken_by);
  return text + ".";
}

std::string peak_sentence(const Explanation& e) {
  if (!e.memory_recorded) return "The step does not record memory: there is no peak to explain.";
  if (e.peak.kinds.empty()) return "";
  const PeakWithoutKind& first = e.peak.kinds.front();
  const std::string phase = e.peak.phase == Phase::unknown ? "" : fmt::format(", in {}", to_string(e.peak.phase));
  std::string text = fmt::format("Storages take at most {} of GPU memory{}; {} of that are {}.",
                                 human_bytes(e.peak.requested), phase, human_bytes(first.at_peak), plural(first.kind));
  if (first.peak_without > 0)
    text += fmt::format(" Without any of these the peak would be {}, mostly {}.", human_bytes(first.peak_without),
                        plural(first.then));
  return text;
}

std::string price_sentence(const Explanation& e) {
  std::vector<const ShadowPrice*> worth;
  // Where one side takes off and the other adds, the mean of both is no price.
  const auto is_one_way = [](const ShadowPrice& p) { return p.below.value_or(1) >= 0 && p.above.value_or(1) >= 0; };
  for (const ShadowPrice& p : e.prices)
    if (p.seconds.value_or(0) > 0 && is_one_way(p)) worth.push_back(&p);
  if (worth.empty()) return "";
  // Against each other by what a percent of each is worth.
  const auto per_percent = [](const ShadowPrice* p) { return *p->seconds * p->resource.amount; };
  const ShadowPrice& p = **std::ranges::max_element(worth, {}, per_percent);
  return fmt::format("One {} more of {} takes {} off a step{}.", p.resource.unit, subject_of(p.resource.number),
                     human_time(*p.seconds),
                     p.dollars ? fmt::format(" (${:.3g} over a million steps)", *p.dollars * 1e6) : "");
}

std::string memory_price_sentence(const Explanation& e) {
  const bool no_price = std::ranges::any_of(
      e.prices, [](const ShadowPrice& p) { return p.resource.unit == "GB" && p.seconds && p.is_zero(); });
  if (!no_price || !e.here.fits || !e.memory_recorded) return "";
  return "More GPU memory would not shorten it: it fits, and nothing in it depends on how much there is.";
}

std::string regret_sentence(const Explanation& e) {
  if (!e.regret) return "";
  if (!e.regret->why_none.empty()) return "Policies were not compared: " + e.regret->why_none;
  const PolicyComparison& c = e.regret->comparison;
  const std::string budget = human_bytes(c.budgets.front().bytes);
  const int best = c.fastest(0);
  if (best < 0) return fmt::format("Of the policies compared none fits within {}.", budget);
  const auto fastest = static_cast<std::size_t>(best);
  std::vector<std::string> costs;
  for (std::size_t p = 0; p < c.policies.size(); ++p) {
    const PolicyCell& cell = c.cell(0, p);
    if (p == fastest || !cell.refusal.empty()) continue;
    const bool is_none = c.policies[p] == kNoPolicy;
    const double more = cell.fits ? e.regret->regret(p) : 0;
    const std::string label = is_none ? "without a memory policy it" : c.policies[p];
    costs.push_back(!cell.fits  ? label + " does not fit"
                    : more == 0 ? label + " costs the same"
                                : fmt::format("{} costs {} more", label, human_time(more)));
  }
  const std::string head = c.policies[fastest] == kNoPolicy ? "the step is fastest without a memory policy"
                                                            : c.policies[fastest] + " is the fastest that was compared";
  return fmt::format("Within {} of GPU memory {} ({}){}.", budget, head, human_time(c.cell(0, fastest).step_time),
                     costs.empty() ? "" : fmt::format("; {}", fmt::join(costs, ", ")));
}

// ", of which keep does not fit": where neighbours change places, there.
std::string unfit_words(const BreakEvenCurve& curve, const BreakEven& b) {
  const auto point = std::ranges::find(curve.points, b.after, &CurvePoint::value);
  if (point == curve.points.end() || b.choice == b.other) return "";
  std::vector<std::string> unfit;
  for (const std::size_t choice : {b.choice, b.other})
    if (const auto figures = figures_of(point->choices[choice]); figures && !figures->fits)
      unfit.emplace_back(kChoices[choice]);
  if (unfit.empty()) return "";
  return unfit.size() == 2 ? "; neither fits" : fmt::format("; {} does not fit", unfit.front());
}

std::string crossing_sentence(const BreakEvenCurve& curve, const BreakEven& b) {
  const std::string& axis = curve.axis.name;
  const std::string unfit = unfit_words(curve, b);
  if (b.choice == b.other)
    return b.fits_after
               ? fmt::format("{} fits from {}={} on (not at {}).", kChoices[b.choice], axis, b.after, b.before)
               : fmt::format("{} fits up to {}={}, no longer at {}.", kChoices[b.choice], axis, b.before, b.after);
  const std::string unit = curve.axis.range ? curve.axis.range->unit : "";
  if (!b.at)
    return fmt::format("From {}={} on {} is faster than {}{}.", axis, b.after, kChoices[b.choice], kChoices[b.other],
                       unfit);
  return fmt::format("From about {}={:.4g}{} on {} is faster than {} (interpolated between {} and {}){}.", axis, *b.at,
                     unit, kChoices[b.choice], kChoices[b.other], b.before, b.after, unfit);
}

// Keep, recompute and offload at one value, of what fits the fastest first; what was refused is left out.
std::vector<std::string> order_at(const CurvePoint& point) {
  std::vector<std::pair<std::pair<bool, double>, std::string>> order;
  for (std::size_t w = 0; w < kChoices.size(); ++w)
    if (const auto figures = figures_of(point.choices[w]))
      order.push_back({{!figures->fits, figures->step_time},
                       fmt::format("{}{}", kChoices[w], figures->fits ? "" : " (does not fit)")});
  std::ranges::stable_sort(order, {}, &std::pair<std::pair<bool, double>, std::string>::first);
  std::vector<std::string> names;
  for (auto& [time, name] : order) names.push_back(std::move(name));
  return names;
}

}  // namespace

std::string reason_words(const std::string& reason) {
  static const std::map<std::string, std::string> kWords = {{"compute", "the GPU's kernels"},
                                                            {"recompute", "kernels that run again"},
                                                            {"copy", "copies between memories"},
                                                            {"collective", "communication between GPUs"},
                                                            {"storage", "reads and writes of storage"},
                                                            {"allocator", "the allocator"},
                                                            {"fault", "waiting for pages"},
                                                            {"host", "the host"},
                                                            {"idle", "nothing"}};
  const auto found = kWords.find(reason);
  return found == kWords.end() ? reason : found->second;
}

std::string amount_text(double value, const std::string& unit) {
  return fmt::format("{:.5g}{}{}", value, unit.empty() || unit == "%" ? "" : " ", unit);
}

std::vector<std::string> explanation_sentences(const Explanation& e) {
  std::vector<std::string> sentences{time_sentence(e), folded_sentence(e), fit_sentence(e),
                                     scale_elasticity_sentence(e), elasticity_sentence(e)};
  for (const NextBound& bound : e.next) sentences.push_back(next_sentence(bound));
  sentences.push_back(kink_sentence(e));
  sentences.push_back(policy_sentence(e));
  for (const std::string& sentence :
       {price_sentence(e), peak_sentence(e), memory_price_sentence(e), regret_sentence(e)})
    sentences.push_back(sentence);
  for (const BreakEvenCurve& curve : e.curves) {
    for (const BreakEven& crossing : curve.crossings) sentences.push_back(crossing_sentence(curve, crossing));
    if (curve.crossings.empty())
      sentences.push_back(fmt::format("Over {} from {} to {} the order stays, the fastest first: {}.", curve.axis.name,
                                      curve.axis.values.front(), curve.axis.values.back(),
                                      fmt::join(order_at(curve.points.front()), ", ")));
  }
  std::erase(sentences, "");
  return sentences;
}

}  // namespace memwall
