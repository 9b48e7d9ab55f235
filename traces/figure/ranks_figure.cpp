#include "traces/figure/ranks_figure.h"

#include <fmt/format.h>

#include <algorithm>

#include "traces/figure/axis.h"
#include "traces/figure/palette.h"
#include "traces/figure/plot.h"
#include "traces/figure/text_metrics.h"

namespace memwall {
namespace {

using namespace plot;

constexpr double kRankRow = 24, kWaitBar = 9, kHeldUpBar = 4, kPlacedLinkBar = 9, kPlacedLinkRow = 18,
                 kPlaceHeading = 24;
constexpr double kBarsWidth = 250;  // width of what the bars may take
constexpr Color kWaitsNear = palette::kSkyBlue, kWaitsFar = palette::kVermillion, kHoldsUp = palette::kGray;

class RanksDrawing {
 public:
  explicit RanksDrawing(const RanksChart& chart) : chart_(chart) {
    figure_.width = kFigureWidth;
    figure_.title = chart.title;
    double widest = 40;
    for (const RankPlace& place : chart.places) {
      for (const RankRow& rank : place.ranks) {
        widest = std::max(widest, text_width(rank.name, kLabelSize));
        longest_ = std::max({longest_, rank.waits_near + rank.waits_far, rank.held_up});
      }
      for (const PlacedLinkRow& link : place.links) widest = std::max(widest, text_width(link.name, kSmallSize));
    }
    for (const RankGroupRow& group : chart.groups) widest = std::max(widest, text_width(group.name, kLabelSize, true));
    left_ = kMargin + std::min(widest, 240.0) + 14;
  }

  Figure draw() && {
    y_ = draw_title(figure_, chart_.title, chart_.subtitle);
    for (const std::string& sentence : chart_.left_out) draw_sentence(sentence);
    y_ = draw_legend(figure_, kMargin, y_, kFigureWidth - kMargin,
                     {{"waits for ranks of its own node", kWaitsNear},
                      {"waits for ranks of another node", kWaitsFar},
                      {"holds others up", kHoldsUp}}) +
         2;
    for (const RankPlace& place : chart_.places) draw_ranks_of(place);
    if (!chart_.groups.empty()) draw_heading("groups, by the place of their members");
    for (const RankGroupRow& group : chart_.groups) draw_group(group);
    for (const RankPlace& place : chart_.places) draw_links_of(place);
    figure_.height = y_ + kMargin;
    return std::move(figure_);
  }

 private:
  void draw_sentence(const std::string& sentence) {
    for (const std::string& line : wrap_text(sentence, kFigureWidth - 2 * kMargin, kSmallSize))
      figure_.add(Text{{kMargin, y_ += kSmallSize + 4}, line, kSmallSize, Anchor::start, palette::kFaintText});
    y_ += 8;
  }

  void draw_heading(const std::string& text) {
    figure_.add(Rectangle{kMargin, y_ + 4, kFigureWidth - 2 * kMargin, kPlaceHeading - 6, palette::kBand});
    figure_.add(Text{{kMargin + 6, y_ + kPlaceHeading - 7}, text, kLabelSize, Anchor::start, palette::kText, true});
    y_ += kPlaceHeading + 2;
  }

  void draw_name(const std::string& name, double height, double size, bool bold = false) {
    figure_.add(Text{{left_ - 8, y_ + height / 2 + size * 0.33},
                     fit_text(name, left_ - 14 - kMargin, size, bold),
                     size,
                     Anchor::end,
                     palette::kText,
                     bold},
                name);
  }

  void draw_words(double x, double height, const std::string& words) {
    figure_.add(Text{{x, y_ + height / 2 + 3.5},
                     fit_text(words, kFigureWidth - kMargin - x, kSmallSize),
                     kSmallSize,
                     Anchor::start,
                     palette::kText},
                words);
  }

  double width_of(double seconds) const { return longest_ > 0 ? kBarsWidth * seconds / longest_ : 0; }

  void draw_ranks_of(const RankPlace& place) {
    if (place.ranks.empty()) return;
    draw_heading(place.name.empty() ? "ranks" : place.name);
    for (const RankRow& rank : place.ranks) {
      draw_name(rank.name, kRankRow - 4, kLabelSize);
      const double top = y_ + 2;
      figure_.add(Rectangle{left_, top, kBarsWidth, kWaitBar + kHeldUpBar + 1, palette::kBand});
      const double near = width_of(rank.waits_near), far = width_of(rank.waits_far);
      if (near > 0)
        figure_.add(Rectangle{left_, top, near, kWaitBar, kWaitsNear},
                    "waits for ranks of its own node: " + format_time(from_seconds(rank.waits_near)));
      if (far > 0)
        figure_.add(Rectangle{left_ + near, top, far, kWaitBar, kWaitsFar},
                    "waits for ranks of another node: " + format_time(from_seconds(rank.waits_far)));
      if (rank.held_up > 0)
        figure_.add(Rectangle{left_, top + kWaitBar + 1, width_of(rank.held_up), kHeldUpBar, kHoldsUp},
                    "holds others up: " + format_time(from_seconds(rank.held_up)));
      draw_words(left_ + kBarsWidth + 10, kRankRow - 4, rank.note);
      y_ += kRankRow;
    }
  }

  void draw_group(const RankGroupRow& group) {
    draw_name(group.name, kRankRow - 6, kLabelSize, true);
    draw_words(left_, kRankRow - 6, group.place);
    draw_words(left_ + kBarsWidth + 10, kRankRow - 6, group.note);
    y_ += kRankRow - 4;
  }

  void draw_links_of(const RankPlace& place) {
    if (place.links.empty()) return;
    draw_heading(place.name.empty() ? "links" : "links, " + place.name);
    for (const PlacedLinkRow& link : place.links) {
      draw_name(link.name, kPlacedLinkBar, kSmallSize);
      figure_.add(Rectangle{left_, y_, kBarsWidth, kPlacedLinkBar, palette::kBand});
      figure_.add(Rectangle{left_, y_, kBarsWidth * std::clamp(link.utilization, 0.0, 1.0), kPlacedLinkBar,
                            palette::color_of("flow")});
      draw_words(left_ + kBarsWidth + 10, kPlacedLinkBar,
                 fmt::format("{}, {:.1f} % of {}", format_bytes(static_cast<double>(link.bytes)),
                             100 * link.utilization, format_rate(link.bandwidth)));
      y_ += kPlacedLinkRow;
    }
  }

  const RanksChart& chart_;
  Figure figure_;
  double left_ = 0, y_ = 0;
  double longest_ = 0;  // of all waits, s
};

}  // namespace

Figure draw_ranks(const RanksChart& chart) { return RanksDrawing(chart).draw(); }

}  // namespace memwall
