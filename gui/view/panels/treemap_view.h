// A live set as a treemap on the screen: hover says what a rectangle is, a click chooses it.
#pragma once

#include <QPixmap>
#include <QWidget>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "gui/drawing/treemap_drawing.h"

namespace memwall::gui {

class TreemapView : public QWidget {
  Q_OBJECT
 public:
  explicit TreemapView(QWidget* parent = nullptr);

  // `tiles`: of `set`, made for `size`; drawn stretched where the widget has another size by now.
  void show_tiles(std::shared_ptr<const TierLiveSet> set, std::vector<TreemapTile> tiles, QSizeF size);
  void set_selected(std::optional<StorageId> storage);
  // Drawn where a rectangle has room.
  void set_names(std::map<StorageId, std::string> names);
  void set_theme(const Theme& theme);
  // What is said of a row (an index into TierLiveSet::rows) when the pointer rests on it.
  void set_words(std::function<QString(std::size_t row)> words) { words_ = std::move(words); }
  const std::vector<TreemapTile>& tiles() const { return tiles_; }
  QSize sizeHint() const override { return {320, 220}; }

 Q_SIGNALS:
  void resized();
  void chosen(std::size_t row);
  void entered_row(std::size_t row);  // double click, or Enter

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void focusInEvent(QFocusEvent* event) override;
  void focusOutEvent(QFocusEvent* event) override;
  bool event(QEvent* event) override;

 private:
  const TreemapTile* tile_at(QPointF point) const;
  QString words_of(const TreemapTile& tile) const;
  void step(int by);
  void redraw();

  std::shared_ptr<const TierLiveSet> set_;
  std::vector<TreemapTile> tiles_;
  QSizeF size_{1, 1};
  std::optional<StorageId> selected_;
  std::map<StorageId, std::string> names_;
  Theme theme_;
  std::function<QString(std::size_t row)> words_;
  QPixmap drawn_;  // null: has to be drawn
};

}  // namespace memwall::gui
