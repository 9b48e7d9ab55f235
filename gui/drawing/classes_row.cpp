// What every instant goes to, as a strip in the colours of the classes, and below it the segments of the critical path
// that lie on the rank. What is narrower than a pixel gets the colour of what takes most of that pixel.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "gui/drawing/row_drawing.h"
#include "gui/model/run_analysis.h"
#include "gui/model/time_sentence.h"
#include "traces/figure/axis.h"
#include "traces/figure/palette.h"
#include "traces/figure/text_metrics.h"
#include "traces/run/analysis/compare.h"

namespace memwall::gui {
namespace {

constexpr double kBandPadding = 2, kBandGap = 1;
constexpr double kShareOfPath = 0.4;  // of the height
constexpr double kLabelMargin = 4;

struct Band {
  double top = 0, height = 0;
};
struct Bands {
  Band classes, path;
};

Bands bands_of(const RowPlace& place) {
  const double room = std::max(place.height - 2 * kBandPadding - kBandGap, 2.0);
  const double path = std::max(std::floor(room * kShareOfPath), 1.0);
  const Band classes{place.top + kBandPadding, room - path};
  return {classes, {classes.top + classes.height + kBandGap, path}};
}

// Of the row's run, also beyond its ends.
Time time_at(const RowPlace& place, double x) {
  const double from_left = (x - place.left) * place.state.viewport.picoseconds_per_pixel();
  return place.state.viewport.visible().begin + Duration(std::llround(from_left)) - place.shift();
}

// Nothing is drawn left and right of it, and the analysis holds the rank.
const RunAnalysis* analysis_of(const RowPlace& place) {
  const RunAnalysis* analysis = place.run().analysis.get();
  return analysis != nullptr && place.row.index < analysis->classes.size() ? analysis : nullptr;
}

// Until the run is analysed: what is known of its time without that.
std::string path_waiting_text(const RowPlace& place) {
  const std::uint64_t ops = place.run().outline().ops;
  const std::string known = step_sentence(place.run());
  if (ops <= kSmallRun) return known + " The critical path is being worked out.";
  return fmt::format("{} Q: the critical path (about {} of memory).", known,
                     format_bytes(static_cast<double>(ops) * kAnalysisBytesPerOp));
}

// What is drawn from one x to the next: a span, or the class that takes most of a pixel which holds several.
struct Piece {
  double from = 0, to = 0;
  TimeClass time_class = TimeClass::idle;
  std::size_t span = 0;  // the first in it
  bool one = false;
};

// At most two pieces per pixel, whatever lies in view.
template <class Span>
std::vector<Piece> pieces_of(const RowPlace& place, const std::vector<Span>& spans, const ClassSums& sums) {
  std::vector<Piece> pieces;
  const double right = place.left + place.width;
  double x = place.left;
  for (std::size_t i = ClassSums::at(spans, time_at(place, x)); i < spans.size() && x < right;) {
    const double from = std::max(x, place.x(spans[i].begin)), to = std::min(right, place.x(spans[i].end));
    if (from >= right) break;
    if (to - from >= 1) {
      pieces.push_back({from, to, spans[i].time_class, i, true});
      x = to;
      ++i;
      continue;
    }
    const double until = std::min(from + 1, right);
    const Time end = time_at(place, until);
    const ClassTimes times = sums.within(spans, time_at(place, from), std::max(end, spans[i].end));
    pieces.push_back({from, until, longest_class(times), i, false});
    x = until;
    i = std::max(i + 1, ClassSums::at(spans, end));
  }
  return pieces;
}

// Neighbours of one class that touch become one.
std::vector<Piece> joined(const std::vector<Piece>& pieces) {
  std::vector<Piece> out;
  for (const Piece& piece : pieces) {
    if (!out.empty() && out.back().time_class == piece.time_class && out.back().to >= piece.from)
      out.back().to = piece.to;
    else
      out.push_back(piece);
  }
  return out;
}

Color class_color(const RowPlace& place, TimeClass time_class) { return color_of(place.theme, to_string(time_class)); }

void draw_label(const RowPlace& place, Figure& figure, const Piece& piece, const Band& band, std::string_view text) {
  const double size = std::min(place.theme.font_size - 1, band.height - 2);
  const std::string shown = size < 8 ? "" : fit_text(text, piece.to - piece.from - 2 * kLabelMargin, size);
  if (shown.empty()) return;
  figure.add(Text{{piece.from + kLabelMargin, band.top + band.height / 2 + size * 0.36},
                  shown,
                  size,
                  Anchor::start,
                  palette::text_on(class_color(place, piece.time_class))});
}

void draw_strip(const RowPlace& place, const RunAnalysis& analysis, const Band& band, CanvasFrame& frame) {
  const std::size_t rank = place.row.index;
  for (const Piece& piece : joined(pieces_of(place, analysis.classes[rank], analysis.class_sums[rank]))) {
    frame.words.insert(to_string(piece.time_class));
    frame.figure.add(
        Rectangle{piece.from, band.top, piece.to - piece.from, band.height, class_color(place, piece.time_class)});
    draw_label(place, frame.figure, piece, band, to_string(piece.time_class));
  }
}

void draw_path(const RowPlace& place, const RunAnalysis& analysis, const Band& band, CanvasFrame& frame) {
  const std::vector<PathSegment>& path = analysis.path_of(place.row.index);
  const std::optional<OpRef>& chosen = place.state.selection.op;
  for (const Piece& piece : pieces_of(place, path, analysis.path_sums[place.row.index])) {
    const double wide = piece.to - piece.from;
    const bool selected = piece.one && chosen && chosen->run == place.row.run && chosen->op == path[piece.span].op;
    // Segments that touch are told apart where there is room for a gap.
    frame.words.insert(to_string(piece.time_class));
    frame.figure.add(Rectangle{piece.from, band.top, wide >= 4 ? wide - 1 : wide, band.height,
                               class_color(place, piece.time_class), selected ? place.theme.selection : kNoColor});
    if (piece.one && path[piece.span].op < analysis.run->trace->ops.size())
      draw_label(place, frame.figure, piece, band, name_of(*analysis.run, path[piece.span].op));
  }
}

std::string described(const Run& run, const PathSegment& segment) {
  const std::string length = format_time(segment.end - segment.begin);
  if (segment.op >= run.trace->ops.size()) return fmt::format("nothing is known of the time before, {}", length);
  const std::string_view name = name_of(run, segment.op);
  switch (segment.part) {
    case PathPart::work:
      return fmt::format("work of {}, {}", name, length);
    case PathPart::call:
      return fmt::format("{} of {} on the host, {}",
                         run.trace->ops[segment.op].kind == OpKind::host_work ? "work" : "call", name, length);
    case PathPart::gap:
      return fmt::format("host time before the call of {}, {}", name, length);
    case PathPart::latency:
      return fmt::format("latency between {} and its cause or effect, {}", name, length);
    case PathPart::wait:
      return fmt::format("{} waits, {}", name, length);
  }
  return length;
}

// "compute: 45.2 % of the visible range".
template <class Span>
std::string share_text(const RowPlace& place, const std::vector<Span>& spans, const ClassSums& sums,
                       TimeClass time_class) {
  const TimeRange visible = place.state.viewport.visible();
  const ClassTimes times = sums.within(spans, visible.begin - place.shift(), visible.end - place.shift());
  const double all = to_seconds(visible.length());
  const double share = all > 0 ? to_seconds(times[time_class]) / all : 0;
  return fmt::format("{}: {} in the visible range, {:.1f} % of it", to_string(time_class),
                     format_time(times[time_class]), 100 * share);
}

// What a pixel holds that several spans share: "here 12 us: compute 60 %, host 40 %".
std::string mixed_text(const ClassTimes& times, Duration within) {
  std::vector<std::pair<Duration, TimeClass>> parts;
  for (int c = 0; c < kTimeClasses; ++c) {
    const auto time_class = static_cast<TimeClass>(c);
    if (times[time_class].count() > 0) parts.emplace_back(times[time_class], time_class);
  }
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (const auto& [time, time_class] : parts)
    text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", to_string(time_class),
                        100 * to_seconds(time) / to_seconds(within));
  return fmt::format("the {} of this pixel: {}", format_time(within), text);
}

OpRef reference(const RowPlace& place, const PathSegment& segment) {
  return {place.row.run, segment.op, segment.part == PathPart::call || segment.part == PathPart::gap};
}

// The segment or class at a point; zoomed out, what its pixel holds. `describe` says what a single one is.
template <class Span, class Describe>
void hit_spans(const RowPlace& place, double x, const std::vector<Span>& spans, const ClassSums& sums, Hit& hit,
               Describe describe) {
  const std::size_t i = ClassSums::at(spans, hit.time);
  const Time begin = time_at(place, x - 0.5), end = time_at(place, x + 0.5);
  const bool here = i < spans.size() && spans[i].begin <= hit.time;
  if (here && spans[i].end - spans[i].begin >= end - begin) {
    hit.text = describe(spans[i]) + "\n" + share_text(place, spans, sums, spans[i].time_class);
    return;
  }
  const ClassTimes times = sums.within(spans, begin, end);
  if (times.total().count() == 0) return;
  const TimeClass most = longest_class(times);
  hit.text = mixed_text(times, end - begin) + "\n" + share_text(place, spans, sums, most);
}

}  // namespace

void draw_classes_row(const RowPlace& place, CanvasFrame& frame) {
  const RunAnalysis* analysis = analysis_of(place);
  if (analysis == nullptr) {
    const double size = place.theme.font_size;
    frame.figure.add(Text{{place.left + 8, place.top + place.height / 2 + size * 0.36},
                          fit_text(path_waiting_text(place), place.width - 16, size),
                          size,
                          Anchor::start,
                          place.theme.faint_text});
    return;
  }
  const Bands bands = bands_of(place);
  draw_strip(place, *analysis, bands.classes, frame);
  draw_path(place, *analysis, bands.path, frame);
}

void hit_classes_row(const RowPlace& place, double x, double y, Hit& hit) {
  const RunAnalysis* analysis = analysis_of(place);
  if (analysis == nullptr) {
    hit.text = path_waiting_text(place);
    return;
  }
  const std::size_t rank = place.row.index;
  const std::vector<PathSegment>& path = analysis->path_of(rank);
  if (y >= bands_of(place).path.top - kBandGap) {
    hit_spans(place, x, path, analysis->path_sums[rank], hit, [&](const PathSegment& segment) {
      if (segment.op != kNoOp) hit.op = reference(place, segment);
      return fmt::format("critical path: {}, {}", to_string(segment.time_class), described(*analysis->run, segment));
    });
    return;
  }
  hit_spans(place, x, analysis->classes[rank], analysis->class_sums[rank], hit, [&](const ClassSpan& span) {
    const std::size_t i = ClassSums::at(path, hit.time);
    const bool same = i < path.size() && path[i].begin <= hit.time && path[i].time_class == span.time_class;
    if (same && path[i].op != kNoOp) hit.op = reference(place, path[i]);
    return fmt::format("{} for {}{}", to_string(span.time_class), format_time(span.end - span.begin),
                       same ? ": " + described(*analysis->run, path[i]) : "");
  });
}

}  // namespace memwall::gui
