#include "gui/view/panels/figure_view.h"

#include <QContextMenuEvent>
#include <QHelpEvent>
#include <QPainter>
#include <QScrollBar>
#include <QToolTip>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "gui/paint/figure_painter.h"
#include "gui/paint/qt_color.h"
#include "gui/view/value_text.h"
#include "gui/view/widget_colors.h"
#include "traces/figure/dark_figure.h"
#include "traces/figure/palette.h"
#include "traces/figure/text_metrics.h"

namespace memwall::gui {
namespace {

constexpr double kLeastScale = 0.6;  // below this the texts of a figure cannot be read: then it scrolls
constexpr double kMostScale = 1.5;
constexpr double kReach = 3;  // how near a point must be to a line

bool covers(const Rectangle& r, double x, double y) {
  return x >= r.x && x <= r.x + r.width && y >= r.y && y <= r.y + r.height;
}

double distance_to(Point a, Point b, double x, double y) {
  const double dx = b.x - a.x, dy = b.y - a.y, length = dx * dx + dy * dy;
  const double along = length > 0 ? std::clamp(((x - a.x) * dx + (y - a.y) * dy) / length, 0.0, 1.0) : 0;
  return std::hypot(x - a.x - along * dx, y - a.y - along * dy);
}

bool covers(const Line& line, double x, double y) { return distance_to(line.from, line.to, x, y) <= kReach; }

bool covers(const Polyline& line, double x, double y) {
  const std::vector<Point>& p = line.points;
  bool inside = false;  // by the parity of the edges to the right
  for (std::size_t i = 0, j = p.size() - 1; i < p.size(); j = i++) {
    if (i > 0 && distance_to(p[j], p[i], x, y) <= kReach) return true;
    if ((p[i].y > y) != (p[j].y > y) && x < p[i].x + (y - p[i].y) / (p[j].y - p[i].y) * (p[j].x - p[i].x))
      inside = !inside;
  }
  return inside && line.fill.opacity > 0;
}

bool covers(const Text& text, double x, double y) {
  if (text.angle != 0) return false;
  const double width = text_width(text.text, text.size, text.bold);
  const double left = text.anchor == Anchor::start    ? text.at.x
                      : text.anchor == Anchor::middle ? text.at.x - width / 2
                                                      : text.at.x - width;
  return x >= left && x <= left + width && y >= text.at.y - text.size && y <= text.at.y + text.size * 0.25;
}

bool covers(const GroupBegin&, double, double) { return false; }
bool covers(const GroupEnd&, double, double) { return false; }

}  // namespace

std::string group_title_at(const Figure& figure, double x, double y) {
  std::vector<const std::string*> open;
  const std::string* found = nullptr;
  for (const Item& item : figure.items) {
    if (const auto* begin = std::get_if<GroupBegin>(&item)) {
      open.push_back(&begin->title);
    } else if (std::holds_alternative<GroupEnd>(item)) {
      if (!open.empty()) open.pop_back();
    } else if (std::visit([&](const auto& shape) { return covers(shape, x, y); }, item)) {
      const auto titled =
          std::find_if(open.rbegin(), open.rend(), [](const std::string* title) { return !title->empty(); });
      if (titled != open.rend()) found = *titled;
    }
  }
  return found == nullptr ? std::string() : *found;
}

class FigureView::Page : public QWidget {
 public:
  using QWidget::QWidget;
  Figure figure;
  double scale = 1;

  void set_figure(Figure shown) {
    figure = std::move(shown);
    dark_.reset();
    update();
  }

 protected:
  void paintEvent(QPaintEvent*) override {
    QPainter painter(this);
    const bool dark = widgets_are_dark();
    if (dark && !dark_) dark_ = dark_figure(figure);
    painter.fillRect(rect(), dark ? qt_color(palette::in_dark(palette::kBackground)) : QColor(Qt::white));
    painter.scale(scale, scale);
    paint_figure(dark ? *dark_ : figure, painter);
  }
  bool event(QEvent* event) override {
    if (event->type() != QEvent::ToolTip) return QWidget::event(event);
    const auto* help = static_cast<QHelpEvent*>(event);
    const std::string title = group_title_at(figure, help->pos().x() / scale, help->pos().y() / scale);
    if (title.empty()) {
      QToolTip::hideText();
    } else {
      QToolTip::showText(help->globalPos(), text_of(title), this);
    }
    return true;
  }

 private:
  std::optional<Figure> dark_;  // `figure` for a dark window, once one was seen
};

FigureView::FigureView(const QString& name, QWidget* parent) : QScrollArea(parent), page_(new Page) {
  setAccessibleName(name);
  setFrameShape(QFrame::NoFrame);
  setAlignment(Qt::AlignHCenter | Qt::AlignTop);
  setFocusPolicy(Qt::StrongFocus);  // arrows scroll
  setWidget(page_);
}

FigureView::~FigureView() = default;

void FigureView::show_figure(Figure figure) {
  page_->set_figure(std::move(figure));
  page_->setAccessibleName(text_of(page_->figure.title));
  setAccessibleDescription(text_of(page_->figure.title));
  QResizeEvent same(size(), size());
  resizeEvent(&same);
}

const Figure& FigureView::figure() const { return page_->figure; }
double FigureView::scale() const { return page_->scale; }

void FigureView::resizeEvent(QResizeEvent* event) {
  QScrollArea::resizeEvent(event);
  const double width = page_->figure.width, height = page_->figure.height;
  if (width <= 0 || height <= 0) {
    page_->resize(0, 0);
    return;
  }
  // The page scrolls downward where it does not fit; room for that bar is kept, so that showing it changes nothing.
  const double room = std::max(1, this->width() - verticalScrollBar()->sizeHint().width() - 2);
  page_->scale = std::clamp(room / width, kLeastScale, kMostScale);
  page_->resize(static_cast<int>(std::ceil(width * page_->scale)), static_cast<int>(std::ceil(height * page_->scale)));
}

}  // namespace memwall::gui
