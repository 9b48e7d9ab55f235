#include "gui/model/viewport.h"

#include <cassert>
#include <cmath>

namespace memwall::gui {
namespace {

constexpr std::size_t kMostHistory = 100;
constexpr double kShortest = 1000;  // picoseconds across

double picoseconds(Time time) { return static_cast<double>(time.count()); }
Time from_picoseconds(double value) { return Time(std::llround(value)); }

}  // namespace

Viewport::Viewport(TimeRange whole, double width) : whole_(whole), visible_(whole), width_(width) { assert(width > 0); }

double Viewport::picoseconds_per_pixel() const { return std::max(1.0, picoseconds(visible_.length())) / width_; }

double Viewport::x(Time time) const { return picoseconds(time - visible_.begin) / picoseconds_per_pixel(); }

Time Viewport::time(double x) const {
  const double at = picoseconds(visible_.begin) + x * picoseconds_per_pixel();
  return std::clamp(from_picoseconds(at), whole_.begin, whole_.end);
}

void Viewport::set(double begin, double length) {
  const double whole = picoseconds(whole_.length());
  length = std::clamp(length, std::min(kShortest, whole), whole);
  begin = std::clamp(begin, picoseconds(whole_.begin), picoseconds(whole_.end) - length);
  visible_.begin = from_picoseconds(begin);
  visible_.end = std::min(whole_.end, visible_.begin + from_picoseconds(length));
}

void Viewport::set_whole(TimeRange whole) {
  whole_ = whole;
  for (TimeRange& range : history_)
    range = {std::clamp(range.begin, whole.begin, whole.end), std::clamp(range.end, whole.begin, whole.end)};
  std::erase_if(history_, [](const TimeRange& range) { return range.length().count() <= 0; });
  set(picoseconds(visible_.begin), picoseconds(visible_.length()));
}

void Viewport::zoom(double factor, double at) {
  assert(factor > 0);
  const double fixed = picoseconds(visible_.begin) + at * picoseconds_per_pixel();
  const double whole = picoseconds(whole_.length());
  const double length = std::clamp(picoseconds(visible_.length()) / factor, std::min(kShortest, whole), whole);
  set(fixed - at / width_ * length, length);
}

void Viewport::pan(double pixels) {
  set(picoseconds(visible_.begin) + pixels * picoseconds_per_pixel(), picoseconds(visible_.length()));
}

void Viewport::show(TimeRange range) {
  remember();
  set(picoseconds(range.begin), picoseconds(range.length()));
}

void Viewport::reveal(Time time) {
  if (visible_.contains(time)) return;
  remember();
  const double length = picoseconds(visible_.length());
  set(picoseconds(time) - length / 2, length);
}

void Viewport::remember() {
  if (!history_.empty() && history_.back() == visible_) return;
  if (history_.size() == kMostHistory) history_.erase(history_.begin());
  history_.push_back(visible_);
}

bool Viewport::undo() {
  while (!history_.empty()) {
    const TimeRange last = history_.back();
    history_.pop_back();
    if (last == visible_) continue;
    visible_ = last;
    return true;
  }
  return false;
}

}  // namespace memwall::gui
