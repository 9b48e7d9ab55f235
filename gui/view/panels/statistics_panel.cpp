// Statistics: where the time of the selected range went, else of the visible one.
#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QTimer>
#include <QVBoxLayout>

#include <algorithm>

#include "gui/model/op_search.h"
#include "gui/view/panels/panel.h"
#include "gui/view/panels/panels.h"
#include "gui/view/panels/statistics_table.h"
#include "gui/view/panels/table_view.h"
#include "gui/view/value_text.h"

namespace memwall::gui {
namespace {

// While the visible range moves nothing is counted; the last range is.
constexpr int kRestMilliseconds = 200;

struct StatisticsQuestion {
  const void* source = nullptr;
  TimeRange range;
  StatisticsKey key = StatisticsKey::op;
  std::vector<bool> lanes;
  bool operator==(const StatisticsQuestion&) const = default;
};

class StatisticsPanel : public Panel {
 public:
  StatisticsPanel(Workspace& the_workspace, QWidget* parent) : Panel(the_workspace, tr("Statistics"), parent) {
    add_controls();
    view_ = new TableView(table_, tr("Statistics"), this);
    view_->setObjectName(QStringLiteral("table"));
    body()->addWidget(view_, 1);
    connect(view_, &TableView::chosen, this, [this](std::size_t row) { mark(row); });
    connect(view_, &TableView::failed, this, [this](const QString& sentence) { set_status(sentence); });
    rest_.setSingleShot(true);
    rest_.setInterval(kRestMilliseconds);
    connect(&rest_, &QTimer::timeout, this, [this] { content_changed(); });
    update_on(&Workspace::selection_changed);
    connect(&workspace(), &Workspace::viewport_changed, this, [this] { rest_.start(); });
    connect(&workspace(), &Workspace::rows_changed, this, [this] { rest_.start(); });
  }

 protected:
  void update_content() override {
    if (run() == nullptr) {
      discard_work(QStringLiteral("statistics"));
      asked_ = {};
      table_.show({}, StatisticsKey::op);
      range_->clear();
      return set_status(tr("No run is open."));
    }
    StatisticsQuestion asked{run()->source.get(), range(), static_cast<StatisticsKey>(key_->currentIndex()), lanes()};
    if (asked == asked_) return;
    asked_ = asked;
    run_in_background<SelectionStatistics>(
        tr("Adding up the spans"), QStringLiteral("statistics"),
        [open = *run(), asked](const LoadProgress& progress) {
          return statistics(open, asked.range, asked.key, asked.lanes, progress);
        },
        [this, asked](SelectionStatistics found) { show_statistics(std::move(found), asked); });
  }

  void start_over() override { asked_ = {}; }

 private:
  void add_controls() {
    auto* line = new QHBoxLayout;
    body()->addLayout(line);
    add_run_choice(line);
    line->addWidget(new QLabel(tr("By"), this));
    key_ = new QComboBox(this);
    key_->setObjectName(QStringLiteral("key"));
    key_->setAccessibleName(tr("Add up by"));
    for (int k = 0; k < kStatisticsKeys; ++k) key_->addItem(text_of(to_string(static_cast<StatisticsKey>(k))));
    line->addWidget(key_);
    connect(key_, &QComboBox::currentIndexChanged, this, [this] { content_changed(); });
    auto* filter = new QLineEdit(this);
    filter->setObjectName(QStringLiteral("filter"));
    filter->setAccessibleName(tr("Filter"));
    filter->setPlaceholderText(tr("Filter"));
    filter->setClearButtonEnabled(true);
    connect(filter, &QLineEdit::textChanged, this, [this](const QString& words) { table_.filter(words); });
    line->addWidget(filter, 1);
    add_button(line, tr("Copy"), tr("Copy the table, or the selected rows, as text"), [this] { view_->copy(); });
    add_button(line, tr("CSV…"), tr("Export the table as CSV"), [this] { view_->export_csv(); });
    range_ = new QLabel(this);
    range_->setObjectName(QStringLiteral("range"));
    range_->setWordWrap(true);
    range_->setMinimumWidth(1);
    body()->addWidget(range_);
  }

  // In the run's own time.
  TimeRange range() const {
    const CanvasState& state = workspace().state();
    const TimeRange of_canvas = state.selection.range.value_or(state.viewport.visible());
    const TimeRange whole = run()->whole();
    return {std::clamp(of_canvas.begin - shift(), whole.begin, whole.end),
            std::clamp(of_canvas.end - shift(), whole.begin, whole.end)};
  }

  // The lanes that the canvas shows; all where it shows none, or has no rows.
  std::vector<bool> lanes() const {
    const RowList& rows = workspace().state().rows;
    std::vector<bool> shown(run()->outline().lanes.size());
    bool any = false;
    for (const std::size_t i : rows.shown()) {
      const CanvasRow& row = rows.rows()[i];
      if (row.kind != RowKind::lane || row.run != run_number() || row.index >= shown.size()) continue;
      shown[row.index] = any = true;
    }
    return any ? shown : std::vector<bool>{};
  }

  void show_statistics(SelectionStatistics found, const StatisticsQuestion& asked) {
    const bool first = table_.rows() == 0;
    const bool selected = workspace().state().selection.range.has_value();
    table_.show(std::move(found), asked.key);
    if (first) view_->fit_columns(StatisticsTable::name);
    const auto counted = std::count(asked.lanes.begin(), asked.lanes.end(), true);
    QString text =
        (selected ? tr("Selected range: %1") : tr("Visible range: %1 (drag in the canvas to select another)"))
            .arg(range_text(asked.range, run()->whole().end));
    if (!asked.lanes.empty() && counted < std::ssize(asked.lanes))
      text += tr("; %1 of %2 lanes, the others are hidden").arg(counted).arg(asked.lanes.size());
    range_->setText(text);
    if (table_.rows() == 0) set_status(tr("No span touches this range."));
  }

  // Ops of that name are marked in the canvas.
  void mark(std::size_t row) {
    const auto key = asked_.key;
    if (table_.is_total(row) || table_.row(row).name.empty() ||
        (key != StatisticsKey::op && key != StatisticsKey::module))
      return;
    run_in_background<SearchResult>(
        tr("Marking them in the lanes"), QStringLiteral("mark"),
        [open = *run(), number = run_number(), name = table_.row(row).name](const LoadProgress& progress) {
          return search(open, number, name, progress);
        },
        [this, name = table_.row(row).name](SearchResult result) {
          const QString count = count_text(result.ops.size());
          workspace().say((result.complete ? tr("%1 ops with \"%2\" are marked.")
                                           : tr("The first %1 ops with \"%2\" are marked, there are more."))
                              .arg(count, text_of(name)));
          workspace().set_found(std::move(result.ops));
        });
  }

  StatisticsTable table_;
  StatisticsQuestion asked_;
  QTimer rest_;
  QComboBox* key_ = nullptr;
  QLabel* range_ = nullptr;
  TableView* view_ = nullptr;
};

}  // namespace

QWidget* make_statistics_panel(Workspace& workspace, QWidget* parent) { return new StatisticsPanel(workspace, parent); }

}  // namespace memwall::gui
