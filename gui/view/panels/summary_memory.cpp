#include "gui/view/panels/summary_memory.h"

#include <QObject>
#include <QStringList>

#include <algorithm>
#include <cmath>

#include "gui/view/panels/html_table.h"
#include "gui/view/panels/reference_browser.h"
#include "gui/view/value_text.h"
#include "traces/run/analysis/summary.h"

namespace memwall::gui {
namespace {

QString unrecorded() { return QObject::tr("not recorded"); }

QString when(const OpenRun& open, Time time, Duration shift) {
  return ReferenceBrowser::link(time + shift, instant_text(time, open.whole().end));
}

// What the missing bytes are counted from, where it is not the peak in use.
QString cause_words(const TierResult& result, Bytes usable) {
  switch (cause_of_missing(result, usable)) {
    case MissingCause::in_one_piece:
      return QObject::tr(" in one piece (fragmentation)");
    case MissingCause::reserved:
      return QObject::tr(" of what is reserved");
    default:
      return {};
  }
}

QString missing_text(const TierResult& result, Bytes usable) {
  return bytes_text(result.missing) + cause_words(result, usable);
}

QString kinds_html(const TierResult& result) {
  std::vector<std::pair<Bytes, int>> kinds;
  for (int k = 0; k < kStorageKinds; ++k)
    if (result.peak_by_kind[k] > 0) kinds.emplace_back(-result.peak_by_kind[k], k);
  std::sort(kinds.begin(), kinds.end());
  QStringList words;
  for (const auto& [bytes, k] : kinds)
    words += swatch(to_string(static_cast<StorageKind>(k))) + QLatin1Char(' ') + bytes_text(-bytes);
  return words.join(QStringLiteral(", "));
}

// By the device's clock, per tier; empty where that is not known.
std::vector<DevicePeak> device_peaks_of(const OpenRun& open) {
  std::vector<DevicePeak> peaks;
  if (!open.analysis || !open.outline().run.trace->knowledge.allocations) return peaks;
  for (const TierSummary& tier : open.analysis->summary.tiers) {
    if (!tier.device_peak) return {};
    peaks.push_back(*tier.device_peak);
  }
  return peaks;
}

QString device_peak_html(const DevicePeak& peak) {
  QString text = bytes_text(peak.bytes);
  if (peak.unnamed > 0) text += QObject::tr(" (%1 of storages that no op names)").arg(bytes_text(peak.unnamed));
  return text;
}

HtmlTable tiers_table(bool has_device_clock) {
  QString explanation = QObject::tr(
      "By the allocator's (host) clock. Peak: blocks in use, rounding included; reserved: with the allocator's cache.");
  std::vector<std::pair<QString, bool>> columns{{QObject::tr("tier"), false},
                                                {QObject::tr("usable"), true},
                                                {QObject::tr("peak"), true},
                                                {QObject::tr("of it"), true},
                                                {QObject::tr("at"), true}};
  if (has_device_clock) {
    explanation += QObject::tr(
        " By the device's clock: as requested, from the first write to the end of the last use, when these run.");
    columns.insert(columns.end(), {{QObject::tr("by the device's clock"), true}, {QObject::tr("at"), true}});
  }
  columns.insert(columns.end(), {{QObject::tr("reserved"), true},
                                 {QObject::tr("missing"), true},
                                 {QObject::tr("by kind at the peak, as requested"), false}});
  return {QObject::tr("Memory"), explanation, std::move(columns)};
}

}  // namespace

QString fit_html(const OpenRun& open, Duration shift) {
  const Run& run = open.outline().run;
  if (!run.trace->knowledge.allocations)
    return QStringLiteral("<p>%1</p>")
        .arg(QObject::tr("Whether it fits is not known: the capture does not say what takes memory."));
  QStringList lines;
  for (std::size_t t = 0; t < run.machine.tiers.size() && t < run.result.tiers.size(); ++t) {
    const TierResult& result = run.result.tiers[t];
    if (result.peak_allocated == 0) continue;
    const Bytes usable = run.machine.tiers[t].holds();
    QString text = QObject::tr("%1: peak %2 of %3, at %4")
                       .arg(escaped(run.machine.tiers[t].name), bytes_text(result.peak_allocated), bytes_text(usable),
                            when(open, result.peak_time, shift));
    if (result.missing > 0)
      text += QStringLiteral("; <b>%1</b>")
                  .arg(QObject::tr("%1 missing%2").arg(bytes_text(result.missing), cause_words(result, usable)));
    lines += text;
  }
  if (lines.isEmpty()) return QStringLiteral("<p>%1</p>").arg(QObject::tr("Nothing is ever held in memory."));
  return QStringLiteral("<p>%1<br>%2</p>")
      .arg(run.result.fits ? QObject::tr("It fits.") : QStringLiteral("<b>%1</b>").arg(QObject::tr("It does not fit.")),
           lines.join(QStringLiteral("<br>")));
}

QString tiers_html(const OpenRun& open, Duration shift) {
  const Run& run = open.outline().run;
  const std::vector<DevicePeak> device = device_peaks_of(open);
  HtmlTable table = tiers_table(!device.empty());
  for (std::size_t t = 0; t < run.machine.tiers.size() && t < run.result.tiers.size(); ++t) {
    const TierResult& result = run.result.tiers[t];
    const Bytes usable = run.machine.tiers[t].holds();
    QStringList cells{escaped(run.machine.tiers[t].name), bytes_text(usable)};
    if (!run.trace->knowledge.allocations) {
      table.add(cells + QStringList{unrecorded(), {}, {}, unrecorded(), unrecorded(), {}});
      continue;
    }
    const double share =
        usable > 0 ? static_cast<double>(result.peak_allocated) / static_cast<double>(usable) : std::nan("");
    cells += {bytes_text(result.peak_allocated), usable > 0 ? percent_text(share) : QString(),
              result.peak_allocated > 0 ? when(open, result.peak_time, shift) : QString()};
    if (t < device.size())
      cells += {device_peak_html(device[t]), device[t].bytes > 0 ? when(open, device[t].time, shift) : QString()};
    table.add(cells + QStringList{bytes_text(result.peak_reserved), missing_text(result, usable), kinds_html(result)});
  }
  return table.text();
}

QString tried_html(const OpenRun& open) {
  const Run& run = open.outline().run;
  HtmlTable table(QObject::tr("What may make it fit"),
                  QObject::tr("Each simulated beside all that was asked for, best first. Where it does not fit, times "
                              "take memory as unlimited."),
                  {{QObject::tr("add"), false},
                   {QObject::tr("fits"), false},
                   {QObject::tr("reserved"), true},
                   {QObject::tr("missing"), true},
                   {QObject::tr("step time"), true}});
  for (const TriedChange& change : run.tried) {
    QString missing = bytes_text(change.missing);
    if (!change.missing_in.empty()) missing += QObject::tr(" in %1").arg(escaped(change.missing_in));
    table.add({escaped(change.options), change.fits ? QObject::tr("yes") : QObject::tr("no"),
               bytes_text(change.peak_reserved), missing, time_text(change.step_time)});
  }
  return table.text();
}

}  // namespace memwall::gui
