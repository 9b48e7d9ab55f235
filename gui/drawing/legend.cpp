#include "gui/drawing/legend.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "traces/figure/text_metrics.h"

namespace memwall::gui {
namespace {

constexpr double kLine = 17, kPadding = 3, kLeft = 6, kSwatch = 10, kGap = 4, kBetween = 13;

struct Explanation {
  std::string_view word, text;
};
struct Part {
  std::string_view title;
  std::vector<Explanation> entries;
};

const std::vector<Part>& parts() {
  static const std::vector<Part> all{{"Time",
                                      {{"forward", "forward"},
                                       {"recompute", "recompute"},
                                       {"backward", "backward"},
                                       {"optimizer", "optimizer"},
                                       {"compute", "compute"},
                                       {"copy", "copy"},
                                       {"collective", "collective"},
                                       {"storage", "storage I/O"},
                                       {"event", "event of another stream"},
                                       {"host", "host"},
                                       {"waiting", "call waits"},
                                       {"allocator", "allocator"},
                                       {"fault", "page fault"},
                                       {"idle", "idle"},
                                       {"flow", "flow over a link"},
                                       {kDimmedWord, "not on the critical path"}}},
                                     {"Memory",
                                      {{"parameter", "parameter"},
                                       {"optimizer_state", "optimizer state"},
                                       {"gradient", "gradient"},
                                       {"input", "input"},
                                       {"activation", "activation"},
                                       {"workspace", "workspace"},
                                       {"communication_buffer", "communication buffer"},
                                       {"unknown", "unknown kind"},
                                       {"rounding", "rounding"}}}};
  return all;
}

class LegendDrawing {
 public:
  LegendDrawing(const Theme& theme, double top, Figure& figure)
      : theme_(theme), above_(top), top_(top + kPadding), figure_(figure) {}

  void draw(const Part& part, const std::set<std::string_view>& words) {
    bool begun = false;
    for (const Explanation& entry : part.entries) {
      if (!words.contains(entry.word)) continue;
      if (!std::exchange(begun, true)) write(part.title, true, 0);
      write(entry.text, false, kSwatch + kGap);
      const Color color = entry.word == kDimmedWord ? theme_.dimmed : color_of(theme_, entry.word);
      figure_.add(Rectangle{at_, top_ + (kLine - kSwatch) / 2, kSwatch, kSwatch, color, theme_.border});
      at_ = next_;
    }
  }
  double bottom() const { return at_ > kLeft ? top_ + kLine + kPadding : above_; }

 private:
  // Leaves `before` free for a swatch, at `at_`.
  void write(std::string_view text, bool bold, double before) {
    const double wide = before + text_width(text, kSmallText, bold);
    if (at_ > kLeft && at_ + wide > figure_.width - kLeft) {
      at_ = kLeft;
      top_ += kLine;
    }
    figure_.add(Text{{at_ + before, top_ + kLine / 2 + 3.5},
                     std::string(text),
                     kSmallText,
                     Anchor::start,
                     bold ? theme_.text : theme_.faint_text,
                     bold});
    next_ = at_ + wide + kBetween;
    if (bold) at_ = next_;
  }

  const Theme& theme_;
  double above_, top_;
  double at_ = kLeft, next_ = kLeft;
  Figure& figure_;
};

}  // namespace

Figure draw_legend(const std::set<std::string_view>& words, const Theme& theme, double width) {
  CanvasFrame nothing;
  nothing.figure = {width, 0, "Legend", {}};
  nothing.words = words;
  append_legend(nothing, theme);
  return std::move(nothing.figure);
}

void append_legend(CanvasFrame& frame, const Theme& theme) {
  Figure& figure = frame.figure;
  const double top = figure.height;
  const std::size_t background = figure.items.size();
  figure.add(Rectangle{});  // its height follows
  LegendDrawing drawing(theme, top, figure);
  for (const Part& part : parts()) drawing.draw(part, frame.words);
  figure.height = drawing.bottom();
  figure.items[background] = Rectangle{0, top, figure.width, figure.height - top, theme.background};
  figure.add(Line{{0, top + 0.5}, {figure.width, top + 0.5}, theme.border});
}

}  // namespace memwall::gui
