#include "traces/figure/tiers_figure.h"

#include <fmt/format.h>

#include <algorithm>

#include "traces/figure/palette.h"
#include "traces/figure/plot.h"
#include "traces/figure/text_metrics.h"

namespace memwall {
namespace {

using namespace plot;

constexpr double kTierBar = 26, kTierRow = 44, kLinkBar = 14, kLinkRow = 24;
constexpr double kUseRoom = 250;  // for the words beside a bar

std::vector<Part> parts_of(const TierRow& tier) {
  std::vector<Part> parts;
  for (const TierPart& part : tier.parts)
    parts.push_back({part.name, static_cast<double>(part.bytes), format_bytes(part.bytes)});
  return parts;
}

double sum(const std::vector<Part>& parts) {
  double total = 0;
  for (const Part& part : parts) total += part.value;
  return total;
}

void draw_name(Figure& figure, const std::string& name, double right, double middle) {
  figure.add(Text{{right - 8, middle + 3.5},
                  fit_text(name, right - 8 - kMargin, kLabelSize, true),
                  kLabelSize,
                  Anchor::end,
                  palette::kText,
                  true},
             name);
}

void draw_tier(Figure& figure, const TierRow& tier, const Area& bar) {
  const std::vector<Part> parts = parts_of(tier);
  const double used = sum(parts), capacity = static_cast<double>(tier.capacity);
  const double usable = capacity - static_cast<double>(tier.unavailable);
  const double full = std::max({used, capacity, 1.0});
  const Scale x{0, full, bar.left, bar.right()};
  draw_name(figure, tier.name, bar.left, bar.top + kTierBar / 2);
  figure.add(Rectangle{bar.left, bar.top, bar.width, kTierBar, palette::kBand});
  draw_stacked_bar(figure, bar, parts, full);
  if (tier.capacity > 0) {
    if (tier.unavailable > 0)
      figure.add(Rectangle{x(usable), bar.top + kTierBar - 5, x(capacity) - x(usable), 5, palette::kGray},
                 "not for tensors: " + format_bytes(tier.unavailable));
    figure.add(Line{{x(usable), bar.top - 4}, {x(usable), bar.bottom() + 4}, palette::kLimit, 1.5});
  }
  std::string words = tier.recorded ? "peak " + format_bytes(used) : "not recorded";
  if (tier.capacity > 0 && tier.recorded)
    words += fmt::format(" of {} ({:.0f} %)", format_bytes(usable), usable > 0 ? 100 * used / usable : 0);
  figure.add(Text{{bar.right() + 10, bar.top + kTierBar / 2 + 3.5}, words, kSmallSize, Anchor::start, palette::kText});
  if (tier.capacity > 0 && used > usable)
    figure.add(Text{{bar.right() + 10, bar.top + kTierBar / 2 + 16.5},
                    format_bytes(used - usable) + " do not fit",
                    kSmallSize,
                    Anchor::start,
                    palette::kLimit,
                    true});
}

void draw_link(Figure& figure, const TierLinkRow& link, const Area& bar) {
  draw_name(figure, link.name, bar.left, bar.top + kLinkBar / 2);
  figure.add(Rectangle{bar.left, bar.top, bar.width, kLinkBar, palette::kBand});
  const double share = std::clamp(link.utilization, 0.0, 1.0);
  figure.add(Rectangle{bar.left, bar.top, bar.width * share, kLinkBar, palette::color_of("flow")});
  const std::string words = fmt::format("{}, {:.1f} % of {}", format_bytes(static_cast<double>(link.bytes)),
                                        100 * link.utilization, format_rate(link.bandwidth));
  figure.add(Text{{bar.right() + 10, bar.top + kLinkBar / 2 + 3.5}, words, kSmallSize, Anchor::start, palette::kText});
}

double label_width(const TiersChart& chart) {
  double width = 40;
  for (const TierRow& tier : chart.tiers) width = std::max(width, text_width(tier.name, kLabelSize, true));
  for (const TierLinkRow& link : chart.links) width = std::max(width, text_width(link.name, kLabelSize, true));
  return std::min(width, 160.0) + 8;
}

}  // namespace

Figure draw_tiers(const TiersChart& chart) {
  Figure figure;
  figure.width = kFigureWidth;
  figure.title = chart.title;
  std::vector<std::vector<Part>> bars;
  for (const TierRow& tier : chart.tiers) bars.push_back(parts_of(tier));
  double y = draw_title(figure, chart.title, chart.subtitle);
  y = draw_legend(figure, kMargin, y, kFigureWidth - kMargin, legend_of(bars)) + 6;
  const double left = kMargin + label_width(chart), width = kFigureWidth - kMargin - left - kUseRoom;
  for (const TierRow& tier : chart.tiers) {
    draw_tier(figure, tier, {left, y, width, kTierBar});
    y += kTierRow;
  }
  if (!chart.links.empty()) {
    figure.add(Text{{left, y + 12},
                    "carried by links, and share of their bandwidth used",
                    kSmallSize,
                    Anchor::start,
                    palette::kFaintText});
    y += 22;
  }
  for (const TierLinkRow& link : chart.links) {
    draw_link(figure, link, {left, y, width, kLinkBar});
    y += kLinkRow;
  }
  figure.height = y + kMargin;
  return figure;
}

}  // namespace memwall
