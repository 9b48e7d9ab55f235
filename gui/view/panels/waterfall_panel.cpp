// Waterfall: where the time went from the first run to the second, and their memory side by side.
#include <QVBoxLayout>

#include "gui/drawing/run_figures.h"
#include "gui/view/panels/figure_view.h"
#include "gui/view/panels/panel.h"
#include "gui/view/panels/panels.h"

namespace memwall::gui {
namespace {

class WaterfallPanel : public Panel {
 public:
  WaterfallPanel(Workspace& the_workspace, QWidget* parent) : Panel(the_workspace, tr("Waterfall"), parent) {
    view_ = new FigureView(tr("Figure of where the time went"), this);
    view_->setObjectName(QStringLiteral("figure"));
    body()->addWidget(view_, 1);
    update_when_loaded();
  }

 protected:
  void update_content() override {
    const auto& runs = workspace().state().runs;
    if (runs.size() < 2) return show_nothing(tr("Open a second run to compare with (C)."));
    if (!workspace().analysed())
      return show_nothing(tr("Waiting for the critical path and the accounting of both runs…"));
    const auto asked = std::pair<const void*, const void*>(runs[0].analysis.get(), runs[1].analysis.get());
    if (asked == asked_) return;
    asked_ = asked;
    run_in_background<Figure>(
        tr("Drawing where the time went"), QStringLiteral("waterfall"),
        [base = runs[0], other = runs[1]](const LoadProgress&) {
          return run_figure({base.analysis->run.get(), other.analysis->run.get()}, {base.path, other.path},
                            {.view = "compare", .tier = "hbm", .range = {}, .lanes = {}});
        },
        [this](Figure figure) {
          view_->show();
          view_->show_figure(std::move(figure));
        });
  }

  void start_over() override { asked_ = {}; }

 private:
  void show_nothing(const QString& why) {
    discard_work(QStringLiteral("waterfall"));
    asked_ = {};
    view_->hide();
    view_->show_figure({});
    set_status(why);
  }

  FigureView* view_ = nullptr;
  std::pair<const void*, const void*> asked_{};
};

}  // namespace

QWidget* make_waterfall_panel(Workspace& workspace, QWidget* parent) { return new WaterfallPanel(workspace, parent); }

}  // namespace memwall::gui
