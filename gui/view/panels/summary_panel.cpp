// Summary: what a run comes to, as `memwall run` prints it.
#include <QApplication>
#include <QClipboard>
#include <QHBoxLayout>
#include <QToolButton>
#include <QVBoxLayout>

#include "gui/view/panels/panel.h"
#include "gui/view/panels/panels.h"
#include "gui/view/panels/reference_browser.h"
#include "gui/view/panels/summary_text.h"
#include "gui/view/value_text.h"

namespace memwall::gui {
namespace {

class SummaryPanel : public Panel {
 public:
  SummaryPanel(Workspace& the_workspace, QWidget* parent) : Panel(the_workspace, tr("Summary"), parent) {
    auto* line = new QHBoxLayout;
    body()->addLayout(line);
    add_run_choice(line);
    analyse_ = add_button(line, {}, tr("Work out the critical path and the accounting of the run"), [this] {
      workspace().load_analyses();
      asked_for_ = run()->source.get();
      content_changed();
    });
    analyse_->setObjectName(QStringLiteral("analyse"));
    line->addStretch(1);
    copy_ = add_button(line, tr("Copy"), tr("Copy the summary as text"),
                       [this] { QApplication::clipboard()->setText(text_->toPlainText()); });
    text_ = new ReferenceBrowser(workspace(), tr("Summary of the run"), this);
    text_->setObjectName(QStringLiteral("text"));
    body()->addWidget(text_, 1);
    update_when_loaded();
    update_when_shifted();
    connect(&workspace(), &Workspace::theme_changed, this, [this] { content_changed(); });
  }

 protected:
  void update_content() override {
    copy_->setEnabled(run() != nullptr);
    if (run() == nullptr) {
      analyse_->hide();
      text_->clear();
      return set_status(tr("No run is open."));
    }
    const bool large = run()->outline().ops > kSmallRun;
    const bool waits = !run()->analysis && (!large || asked_for_ == run()->source.get());
    analyse_->setText(tr("Work out the critical path and the accounting (needs about %1 of memory)")
                          .arg(bytes_text(analysis_bytes(*run()))));
    analyse_->setVisible(!run()->analysis && !waits);
    const bool same = shown_ == run()->source.get();
    shown_ = run()->source.get();
    text_->show_html(summary_html(*run(), shift()), same);
    if (run()->analysis) return set_status({});
    set_status(waits ? tr("Working out the critical path and the accounting; the step time and its classes follow…")
                     : tr("The run is large: its critical path, and what its step time consists of, are worked out on "
                          "request."));
  }

 private:
  ReferenceBrowser* text_ = nullptr;
  QToolButton *analyse_ = nullptr, *copy_ = nullptr;
  const void *asked_for_ = nullptr, *shown_ = nullptr;
};

}  // namespace

QWidget* make_summary_panel(Workspace& workspace, QWidget* parent) { return new SummaryPanel(workspace, parent); }

}  // namespace memwall::gui
