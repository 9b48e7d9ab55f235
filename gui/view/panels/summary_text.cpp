#include "gui/view/panels/summary_text.h"

#include <QObject>
#include <QStringList>

#include <algorithm>
#include <cmath>

#include "gui/drawing/run_figures.h"
#include "gui/model/time_sentence.h"
#include "gui/view/panels/html_table.h"
#include "gui/view/panels/reference_browser.h"
#include "gui/view/panels/summary_memory.h"
#include "gui/view/value_text.h"
#include "sim/error.h"
#include "traces/figure/axis.h"
#include "traces/run/analysis/interval_text.h"
#include "traces/run/analysis/summary.h"

namespace memwall::gui {
namespace {

constexpr Bytes kBytesPerOp = 300;
constexpr std::size_t kMostSteps = 50;  // of the table: thousands of rows of text take seconds to lay out

QString tr(const char* text) { return QObject::tr(text); }

// The same step before policies and without a pager: what its time stands for, and what it needs.
QString unchanged_words(const Run& run) {
  QStringList words{tr("a step before policies and without a pager")};
  for (std::size_t t = 0; t < run.unchanged.size() && run.trace->knowledge.allocations; ++t)
    if (const TierResult& tier = run.unchanged[t]; tier.peak_allocated > 0)
      words += tr("%1: peak %2").arg(text_of(run.machine.tiers[t].name), bytes_text(tier.peak_allocated)) +
               (tier.missing > 0 ? tr(", %1 missing").arg(bytes_text(tier.missing)) : QString());
  return words.join(QStringLiteral("; ")).toHtmlEscaped();
}

QString overview(const OpenRun& open) {
  const RunOutline& outline = open.outline();
  const Run& run = outline.run;
  const RunSummary* const s = open.analysis ? &open.analysis->summary : nullptr;
  HtmlTable table(tr("Overview"), {}, {{{}, false}, {{}, true}, {{}, false}});
  if (s != nullptr) {
    table.add({tr("step time"), time_text(s->step_time),
               s->step_count > 1 ? tr("host, one step boundary to the next; mean of %1 steps").arg(s->step_count)
                                 : tr("host, from the step's boundary to the end of all work it left")});
    if (s->step_interval)
      table.add({tr("80 % interval"),
                 tr("%1 to %2").arg(time_text(s->step_interval->low), time_text(s->step_interval->high)),
                 escaped(interval_text(*s->step_interval, s->step_time))});
  }
  if (run.unchanged_step.count() > 0)
    table.add({tr("without policies"), time_text(run.unchanged_step), unchanged_words(run)});
  table.add({tr("GPU span"), time_text(run.result.gpu_span), tr("first GPU start to last GPU end of the whole run")});
  table.add({tr("total"), time_text(run.result.end), tr("start of the host program to the end of everything")});
  if (s != nullptr && s->samples_per_second > 0)
    table.add(
        {tr("samples"), plain_text(std::round(s->samples_per_second * 10) / 10) + tr(" /s"), tr("all ranks together")});
  if (s != nullptr && s->tokens_per_second > 0)
    table.add({tr("tokens"), count_text(static_cast<std::uint64_t>(s->tokens_per_second)) + tr(" /s"),
               tr("all ranks together")});
  table.add(
      {tr("ops"), count_text(outline.ops),
       s != nullptr
           ? tr("%1 of them on the device, %2 moves by the pager, %3 events")
                 .arg(count_text(s->device_ops), count_text(s->moves), count_text(s->events))
           : tr("%1 moves by the pager, %2 events").arg(count_text(outline.moves), count_text(run.result.events))});
  table.add({tr("storages"), count_text(outline.storages), {}});
  return table.text();
}

QString setting(const Run& run) {
  HtmlTable table(tr("Setting"), {}, {{{}, false}, {{}, false}});
  const auto row = [&](const QString& name, const std::string& value) {
    if (!value.empty()) table.add({name, escaped(value)});
  };
  row(tr("machine"), run.machine.name);
  const RunChanges& changes = run.changes;
  for (std::size_t i = 0; i < changes.overrides.size(); ++i)
    row(i == 0 ? tr("overrides") : QString(), changes.overrides[i]);
  row(tr("GPU"), run.machine.gpu.name);
  for (std::size_t i = 0; i < run.policies.size(); ++i) row(i == 0 ? tr("policies") : QString(), run.policies[i]);
  if (run.policies.empty()) row(tr("policies"), "none");
  row(tr("pager"), run.pager);
  row(tr("allocator"), run.allocator + (run.allocator_settings.empty() ? "" : " (" + run.allocator_settings + ")"));
  for (std::size_t i = 0; i < changes.scale.size(); ++i)
    row(i == 0 ? tr("durations scaled") : QString(), changes.scale[i]);
  if (changes.transfer_host) row(tr("host time"), "transferred too");
  for (const RecipeItem& item : run.trace->recipe)
    row(QString::fromStdString(item.what), item.value + (item.setting.empty() ? "" : " (" + item.setting + ")"));
  for (std::size_t i = 0; i < run.inputs.size(); ++i) row(i == 0 ? tr("made from") : QString(), run.inputs[i].name);
  if (run.provenance) {
    row(tr("written"), run.provenance->date + (run.provenance->host.empty() ? "" : " on " + run.provenance->host));
    row(tr("command"), run.provenance->command_line);
  }
  return table.text();
}

// What is said of the steps that have no row.
QString further_steps(const std::vector<StepWindow>& steps) {
  if (steps.size() <= kMostSteps) return {};
  Duration shortest = kNever, longest{};
  for (std::size_t i = kMostSteps; i < steps.size(); ++i) {
    shortest = std::min(shortest, steps[i].end - steps[i].begin);
    longest = std::max(longest, steps[i].end - steps[i].begin);
  }
  return QStringLiteral("<p class=\"faint\">%1</p>")
      .arg(tr("and %1 more, of %2 to %3 on the host each")
               .arg(count_text(steps.size() - kMostSteps), time_text(shortest), time_text(longest)));
}

QString steps(const OpenRun& open, Duration shift) {
  const RunOutline& outline = open.outline();
  HtmlTable table(tr("Steps"), {},
                  {{tr("step"), false}, {tr("begins"), true}, {tr("host"), true}, {tr("GPU span"), true}});
  const auto& ranks = outline.run.trace->rank_table;
  for (std::size_t i = 0; i < std::min(outline.steps.size(), kMostSteps); ++i) {
    const StepWindow& step = outline.steps[i];
    QString name = escaped(step.name);
    if (ranks.size() > 1) name += tr(", rank %1").arg(ranks[step.rank].number);
    const auto& results = outline.run.result.steps;
    table.add({name, ReferenceBrowser::link(step.begin + shift, instant_text(step.begin, open.whole().end)),
               time_text(step.end - step.begin), i < results.size() ? time_text(results[i].gpu_span) : QString()});
  }
  return table.text() + further_steps(outline.steps);
}

QString classes(const RunSummary& s) {
  HtmlTable table(tr("Where the time of a step goes"), tr("Adds up to the step; and the critical path of the run."),
                  {{{}, false}, {tr("per step"), true}, {tr("share"), true}, {tr("on the path"), true}});
  const Duration all = s.times.total();
  for (int c = 0; c < kTimeClasses; ++c) {
    const auto time_class = static_cast<TimeClass>(c);
    const Duration part = s.times[time_class], path = s.path[time_class];
    if (part.count() == 0 && path.count() == 0) continue;
    table.add({swatch(to_string(time_class)), time_text(part / s.step_count), percent_text(share_of(part, all)),
               time_text(path)});
  }
  return table.text();
}

QString links(const Run& run) {
  HtmlTable table(tr("Links"), tr("Utilization: of what the link could carry in the whole run."),
                  {{tr("link"), false},
                   {tr("carried"), true},
                   {tr("busy"), true},
                   {tr("utilization"), true},
                   {tr("bandwidth"), true}});
  for (std::size_t l = 0; l < run.machine.links.size() && l < run.result.links.size(); ++l) {
    const LinkResult& result = run.result.links[l];
    const double bandwidth = run.machine.links[l].bandwidth, could = bandwidth * to_seconds(run.result.end);
    if (result.bytes == 0) continue;
    table.add({escaped(run.machine.links[l].name), bytes_text(result.bytes), time_text(result.busy),
               percent_text(could > 0 ? static_cast<double>(result.bytes) / could : 0), rate_text(bandwidth)});
  }
  return table.text();
}

QString waits(const RunSummary& s) {
  HtmlTable table(
      tr("Waits"),
      tr("How long a host thread or a stream stood still, and for what: one thing at a time, together at most "
         "the run."),
      {{tr("lane"), false}, {tr("waits for"), false}, {tr("time"), true}, {tr("ops"), true}});
  for (const LaneWait& wait : s.waits.lanes)
    table.add({escaped(wait.lane), escaped(to_string(wait.reason)), time_text(wait.time), count_text(wait.count)});
  return table.text();
}

QString decided(const RunSummary& s) {
  constexpr std::size_t kMostModules = 20;
  HtmlTable table(
      tr("What leaves the GPU's memory and comes back"),
      tr("By module. Late: the use of what was fetched waited for it; slack: how long before its use it had "
         "arrived, the smallest."),
      {{tr("module"), false},
       {tr("copied out"), true},
       {tr("back"), true},
       {tr("late"), true},
       {tr("slack"), true},
       {tr("made again"), true},
       {tr("ops run again"), true},
       {tr("for"), true}});
  for (const ModuleDecisions& m : s.decisions.modules) {
    if (&m == s.decisions.modules.data() + kMostModules) break;
    table.add({m.module.empty() ? tr("outside of modules") : escaped(m.module), bytes_text(m.copied_out),
               bytes_text(m.copied_in), count_text(m.late), m.slack ? time_text(*m.slack) : QString(),
               bytes_text(m.made_again), count_text(m.rerun_ops), time_text(m.rerun_time)});
  }
  return table.text();
}

QString origins(const RunSummary& s) {
  HtmlTable table(tr("Where the times on the device come from"), {}, {{{}, false}, {{}, true}, {{}, false}});
  const auto row = [&](const QString& name, Duration part, const QString& meaning) {
    table.add({name, percent_text(s.origin.share(part)), meaning});
  };
  row(tr("measured"), s.origin.measured, tr("captured on this machine"));
  row(tr("transferred"), s.origin.transferred, tr("measured elsewhere or at another size, scaled by a model"));
  row(tr("modelled"), s.origin.modelled, tr("from FLOPs, bytes and the machine file alone"));
  return table.text();
}

QString ranks(const RunSummary& s) {
  HtmlTable table(tr("Ranks"), tr("Held up others: by how much later it came to collectives than the one before."),
                  {{tr("rank"), true},
                   {tr("step time"), true},
                   {tr("GPU span"), true},
                   {tr("waits for peers"), true},
                   {tr("collectives"), true},
                   {tr("came last"), true},
                   {tr("held up others"), true}});
  for (const RankSummary& r : s.by_rank)
    table.add({QString::number(r.number), time_text(r.step_time), time_text(r.gpu_span), time_text(r.peer_wait),
               count_text(r.collectives), count_text(r.last), time_text(r.held_up)});
  return table.text();
}

// A file that is damaged there is told of where its lanes are drawn.
std::string sentence_of(const OpenRun& open) {
  try {
    return step_sentence(open);
  } catch (const InputError&) {
    return "It takes " + format_time(open.outline().run.result.end) + ".";
  }
}

// The rank that the others wait for, where one stands out.
QString straggler_html(const RunSummary& s) {
  const auto index = straggler(s.by_rank);
  if (!index) return {};
  const RankSummary& rank = s.by_rank[*index];
  return QStringLiteral("<p>%1</p>")
      .arg(tr("Rank %1 is the straggler: it came last to %2 of %3 collectives, and held the others up %4.")
               .arg(rank.number)
               .arg(count_text(rank.last), count_text(rank.collectives), time_text(rank.held_up)));
}

QString notes(const Run& run) {
  if (run.trace->notes.empty() && run.warnings.empty()) return {};
  QString html = QStringLiteral("<h3>%1</h3>").arg(tr("Notes"));
  for (const std::string& warning : run.warnings) html += QStringLiteral("<p><b>%1</b></p>").arg(escaped(warning));
  for (const std::string& note : run.trace->notes) html += QStringLiteral("<p>%1</p>").arg(escaped(note));
  return html;
}

}  // namespace

QString summary_html(const OpenRun& open, Duration shift) {
  const Run& run = open.outline().run;
  QString html = QStringLiteral("<p><b>%1</b></p>").arg(escaped(headline_of(run)));
  if (!run.result.fits && run.trace->knowledge.allocations)
    html += QStringLiteral("<p><b>%1</b></p>")
                .arg(tr("Does not fit: memory was taken as unlimited, and what is missing is listed below."));
  html += tried_html(open) + overview(open);
  const RunSummary* const s = open.analysis ? &open.analysis->summary : nullptr;
  if (s != nullptr) html += straggler_html(*s) + ranks(*s);
  html += steps(open, shift);
  if (s != nullptr) html += classes(*s);
  html += tiers_html(open, shift) + links(run);
  if (s != nullptr && !s->decisions.empty()) html += decided(*s);
  if (s != nullptr) html += waits(*s) + origins(*s);
  return html + setting(run) + notes(run);
}

QString first_look_html(const OpenRun& open, Duration shift) {
  const Run& run = open.outline().run;
  QString html = QStringLiteral("<p><b>%1</b></p>").arg(escaped(headline_of(run)));
  html += fit_html(open, shift);
  const RunSummary* const s = open.analysis ? &open.analysis->summary : nullptr;
  // A number and its unit stay on one line.
  html += QStringLiteral("<p>%1</p>").arg(escaped(sentence_of(open)).replace(" %", "&nbsp;%"));
  if (s == nullptr) return html;
  html += straggler_html(*s);
  std::vector<std::pair<Duration, TimeClass>> parts;
  for (int c = 0; c < kTimeClasses; ++c) {
    const auto time_class = static_cast<TimeClass>(c);
    if (s->times[time_class] > Duration{}) parts.emplace_back(-s->times[time_class], time_class);
  }
  std::sort(parts.begin(), parts.end());
  html += QStringLiteral("<table cellspacing=\"0\">");
  for (const auto& [part, time_class] : parts)
    html += QStringLiteral("<tr><td>%1</td><td align=\"right\">%2</td><td align=\"right\">%3</td></tr>")
                .arg(swatch(to_string(time_class)), time_text(-part / s->step_count),
                     percent_text(share_of(-part, s->times.total())));
  return html + QStringLiteral("</table>");
}

Bytes analysis_bytes(const OpenRun& run) { return static_cast<Bytes>(run.outline().ops) * kBytesPerOp; }

}  // namespace memwall::gui
