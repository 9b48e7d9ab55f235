// Differences: two runs op by op, tier by tier, link by link.
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QTabWidget>
#include <QToolButton>
#include <QVBoxLayout>

#include <array>

#include "gui/view/panels/difference_table.h"
#include "gui/view/panels/panel.h"
#include "gui/view/panels/panels.h"
#include "gui/view/panels/table_view.h"
#include "gui/view/value_text.h"

namespace memwall::gui {
namespace {

class DifferencesPanel : public Panel {
 public:
  DifferencesPanel(Workspace& the_workspace, QWidget* parent)
      : Panel(the_workspace, tr("Differences"), parent),
        tiers_(tier_difference_columns()),
        links_(link_difference_columns()) {
    add_controls();
    tabs_ = new QTabWidget(this);
    tabs_->setObjectName(QStringLiteral("tabs"));
    tabs_->setDocumentMode(true);
    body()->addWidget(tabs_, 1);
    add_table(ops_, tr("Ops"), QStringLiteral("ops"));
    add_table(tiers_, tr("Memory"), QStringLiteral("tiers"));
    add_table(links_, tr("Links"), QStringLiteral("links"));
    connect(view(0), &TableView::entered_row, this, [this](std::size_t row) { go_to_example(row); });
    update_when_loaded();
  }

 protected:
  void update_content() override {
    const auto& comparison = workspace().state().comparison;
    if (comparison == shown_ && comparison) return;
    shown_ = comparison;
    if (!comparison) {
      show_tables(nullptr);
      counts_->clear();
      return set_status(why_nothing());
    }
    set_status({});
    const Comparison& c = comparison->comparison;
    counts_->setText(tr("Ops: %1 equal, %2 changed, %3 added, %4 removed. Time of all steps: %5 to %6 (%7). "
                        "Enter or a double click goes to the largest example and aligns the runs there.")
                         .arg(count_text(c.ops_equal), count_text(c.ops_changed), count_text(c.ops_added),
                              count_text(c.ops_removed), time_text(c.base_time), time_text(c.other_time),
                              signed_time_text(c.other_time - c.base_time)));
    show_tables(comparison);
  }

 private:
  void add_controls() {
    auto* line = new QHBoxLayout;
    body()->addLayout(line);
    auto* filter = new QLineEdit(this);
    filter->setObjectName(QStringLiteral("filter"));
    filter->setAccessibleName(tr("Filter"));
    filter->setPlaceholderText(tr("Filter"));
    filter->setClearButtonEnabled(true);
    line->addWidget(filter, 1);
    connect(filter, &QLineEdit::textChanged, this, [this](const QString& words) {
      for (ValueTable* table : std::array<ValueTable*, 3>{&ops_, &tiers_, &links_}) table->filter(words);
    });
    add_button(line, tr("Copy"), tr("Copy the table, or the selected rows, as text"),
               [this] { view(tabs_->currentIndex())->copy(); });
    add_button(line, tr("CSV…"), tr("Export the table as CSV"), [this] { view(tabs_->currentIndex())->export_csv(); });
    counts_ = new QLabel(this);
    counts_->setObjectName(QStringLiteral("counts"));
    counts_->setWordWrap(true);
    counts_->setMinimumWidth(1);
    body()->addWidget(counts_);
  }

  void add_table(ValueTable& table, const QString& title, const QString& name) {
    auto* table_view = new TableView(table, tr("Differences: %1").arg(title), tabs_);
    table_view->setObjectName(name);
    tabs_->addTab(table_view, title);
    connect(table_view, &TableView::failed, this, [this](const QString& sentence) { set_status(sentence); });
  }

  TableView* view(int tab) const { return static_cast<TableView*>(tabs_->widget(tab)); }

  QString why_nothing() const {
    if (workspace().state().runs.size() < 2) return tr("Open a second run to compare with (C).");
    if (!workspace().analysed()) return tr("Waiting for the critical path and the accounting of both runs…");
    return tr("Comparing the runs op by op…");
  }

  void show_tables(const std::shared_ptr<const RunComparison>& comparison) {
    ops_.show(comparison);
    tiers_.show(comparison ? tier_difference_cells(comparison->comparison) : std::vector<std::vector<ValueCell>>{});
    links_.show(comparison ? link_difference_cells(comparison->comparison) : std::vector<std::vector<ValueCell>>{});
    view(0)->fit_columns(DifferenceTable::name);
    view(1)->fit_columns(6);
    view(2)->fit_columns(0);
    tabs_->setTabText(0, ops_.rows() == 0 ? tr("Ops") : tr("Ops (%1)").arg(count_text(ops_.rows())));
  }

  void go_to_example(std::size_t row) {
    const auto& runs = workspace().state().runs;
    if (!shown_ || runs.size() < 2 || !workspace().analysed()) return;
    run_in_background<OpRef>(
        tr("Looking for the largest example"), QStringLiteral("example"),
        [comparison = shown_, row, base = runs[0].analysis, other = runs[1].analysis](const LoadProgress&) {
          return largest_example(*comparison, row, *base, *other);
        },
        [this](OpRef op) {
          if (op.op == kNoOp) return workspace().say(tr("No op of this row can be shown."));
          // First the times, then the way there: what is brought into view stands where it is drawn.
          if (shown_->counterpart(op)) workspace().align_to(op);
          workspace().go_to(op);
        });
  }

  DifferenceTable ops_;
  CellTable tiers_, links_;
  std::shared_ptr<const RunComparison> shown_;
  QLabel* counts_ = nullptr;
  QTabWidget* tabs_ = nullptr;
};

}  // namespace

QWidget* make_differences_panel(Workspace& workspace, QWidget* parent) {
  return new DifferencesPanel(workspace, parent);
}

}  // namespace memwall::gui
