// Hierarchy: how full each tier gets and with what, and what the links carried.
#include <QHBoxLayout>
#include <QVBoxLayout>

#include "gui/drawing/run_tiers.h"
#include "gui/view/panels/figure_view.h"
#include "gui/view/panels/panel.h"
#include "gui/view/panels/panels.h"

namespace memwall::gui {
namespace {

class HierarchyPanel : public Panel {
 public:
  HierarchyPanel(Workspace& the_workspace, QWidget* parent) : Panel(the_workspace, tr("Hierarchy"), parent) {
    auto* line = new QHBoxLayout;
    body()->addLayout(line);
    add_run_choice(line);
    view_ = new FigureView(tr("Figure of the memory hierarchy"), this);
    view_->setObjectName(QStringLiteral("figure"));
    body()->addWidget(view_, 1);
  }

 protected:
  void update_content() override {
    set_status(run() == nullptr ? tr("No run is open.") : QString());
    view_->setVisible(run() != nullptr);
    // The outline of a run says all of it: nothing has to be read.
    view_->show_figure(run() == nullptr ? Figure{} : draw_tiers(tiers_chart(run()->outline().run)));
  }

 private:
  FigureView* view_ = nullptr;
};

}  // namespace

QWidget* make_hierarchy_panel(Workspace& workspace, QWidget* parent) { return new HierarchyPanel(workspace, parent); }

}  // namespace memwall::gui
