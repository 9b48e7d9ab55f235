#include "gui/view/panels/treemap_view.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QToolTip>

#include <algorithm>

#include "gui/paint/figure_painter.h"
#include "gui/view/value_text.h"

namespace memwall::gui {

TreemapView::TreemapView(QWidget* parent) : QWidget(parent) {
  setObjectName(QStringLiteral("treemap"));
  setAccessibleName(tr("Treemap of the live set"));
  setFocusPolicy(Qt::StrongFocus);
  setMinimumSize(60, 40);
}

void TreemapView::show_tiles(std::shared_ptr<const TierLiveSet> set, std::vector<TreemapTile> tiles, QSizeF size) {
  set_ = std::move(set);
  tiles_ = std::move(tiles);
  size_ = size.expandedTo({1, 1});
  redraw();
}

void TreemapView::set_selected(std::optional<StorageId> storage) {
  if (storage == selected_) return;
  selected_ = storage;
  redraw();
}

void TreemapView::set_names(std::map<StorageId, std::string> names) {
  if (names == names_) return;
  names_ = std::move(names);
  redraw();
}

void TreemapView::set_theme(const Theme& theme) {
  theme_ = theme;
  redraw();
}

void TreemapView::redraw() {
  drawn_ = {};
  update();
}

void TreemapView::paintEvent(QPaintEvent*) {
  QPainter painter(this);
  if (set_ == nullptr || set_->rows.empty()) return;
  if (drawn_.isNull()) {
    const double scale = devicePixelRatioF();
    drawn_ = QPixmap((size_ * scale).toSize().expandedTo({1, 1}));
    drawn_.setDevicePixelRatio(scale);
    drawn_.fill(Qt::transparent);
    QPainter onto(&drawn_);
    paint_figure(draw_treemap(*set_, tiles_, selected_, theme_, size_.width(), size_.height(), names_), onto);
  }
  painter.drawPixmap(QRectF(rect()), drawn_, QRectF(drawn_.rect()));
  if (!hasFocus()) return;
  painter.setPen(QPen(palette().color(QPalette::Highlight), 2));
  painter.drawRect(QRectF(rect()).adjusted(1, 1, -1, -1));
}

void TreemapView::resizeEvent(QResizeEvent*) { Q_EMIT resized(); }

const TreemapTile* TreemapView::tile_at(QPointF point) const {
  const double x = point.x() * size_.width() / std::max(1, width());
  const double y = point.y() * size_.height() / std::max(1, height());
  const auto found = std::find_if(tiles_.begin(), tiles_.end(), [&](const TreemapTile& tile) {
    const Rectangle& place = tile.place;
    return x >= place.x && x < place.x + place.width && y >= place.y && y < place.y + place.height;
  });
  return found == tiles_.end() ? nullptr : &*found;
}

QString TreemapView::words_of(const TreemapTile& tile) const {
  if (tile.row != kRest) return words_ ? words_(tile.row) : QString();
  return tr("%1: %2").arg(text_of(to_string(tile.kind)), text_of(to_string(rest_of(*set_, tiles_, tile.kind))));
}

void TreemapView::mousePressEvent(QMouseEvent* event) {
  const TreemapTile* const tile = tile_at(event->position());
  if (tile != nullptr && tile->row != kRest) Q_EMIT chosen(tile->row);
}

void TreemapView::mouseDoubleClickEvent(QMouseEvent* event) {
  const TreemapTile* const tile = tile_at(event->position());
  if (tile != nullptr && tile->row != kRest) Q_EMIT entered_row(tile->row);
}

void TreemapView::step(int by) {
  std::vector<std::uint32_t> rows;
  std::size_t at = 0;
  bool found = false;
  for (const TreemapTile& tile : tiles_) {
    if (tile.row == kRest) continue;
    if (selected_ && set_->rows[tile.row].storage == *selected_) {
      at = rows.size();
      found = true;
    }
    rows.push_back(tile.row);
  }
  if (rows.empty()) return;
  const auto next = found ? static_cast<std::ptrdiff_t>(at) + by : 0;
  Q_EMIT chosen(rows[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(next, 0, std::ssize(rows) - 1))]);
}

void TreemapView::keyPressEvent(QKeyEvent* event) {
  switch (event->key()) {
    case Qt::Key_Right:
    case Qt::Key_Down:
      return step(1);
    case Qt::Key_Left:
    case Qt::Key_Up:
      return step(-1);
    case Qt::Key_Return:
    case Qt::Key_Enter:
      for (const TreemapTile& tile : tiles_)
        if (tile.row != kRest && selected_ && set_->rows[tile.row].storage == *selected_)
          return Q_EMIT entered_row(tile.row);
      return;
    default:
      QWidget::keyPressEvent(event);
  }
}

void TreemapView::focusInEvent(QFocusEvent*) { update(); }
void TreemapView::focusOutEvent(QFocusEvent*) { update(); }

bool TreemapView::event(QEvent* event) {
  if (event->type() != QEvent::ToolTip) return QWidget::event(event);
  const auto* help = static_cast<QHelpEvent*>(event);
  const TreemapTile* const tile = tile_at(help->pos());
  if (tile == nullptr) {
    QToolTip::hideText();
  } else {
    QToolTip::showText(help->globalPos(), words_of(*tile), this);
  }
  return true;
}

}  // namespace memwall::gui
