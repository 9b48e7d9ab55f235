// Shows a figure on its own page, fitted into the width: the titles of its groups appear where the
// pointer rests. Figures are made for print, on white; in a dark window the page is a dark one.
#pragma once

#include <QScrollArea>

#include <string>

#include "traces/figure/figure.h"

namespace memwall::gui {

// The title of the innermost group that has one, of the topmost shape that covers a point; "" where none does.
std::string group_title_at(const Figure& figure, double x, double y);

class FigureView : public QScrollArea {
 public:
  explicit FigureView(const QString& name, QWidget* parent = nullptr);
  ~FigureView() override;

  void show_figure(Figure figure);
  const Figure& figure() const;
  // Points of the figure per logical pixel now, and the other way round.
  double scale() const;

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  class Page;
  Page* page_;
};

}  // namespace memwall::gui
