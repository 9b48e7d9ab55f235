// Search: ops and storages by words, as one types; results are marked in the canvas.
#include <QHBoxLayout>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QTabWidget>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>

#include <algorithm>

#include "gui/view/panels/found_table.h"
#include "gui/view/panels/panel.h"
#include "gui/view/panels/panels.h"
#include "gui/view/panels/table_view.h"
#include "gui/view/value_text.h"

namespace memwall::gui {
namespace {

constexpr int kTypingMilliseconds = 150;

class SearchPanel : public Panel {
 public:
  SearchPanel(Workspace& the_workspace, QWidget* parent) : Panel(the_workspace, tr("Search"), parent) {
    add_controls();
    tabs_ = new QTabWidget(this);
    ops_view_ = new TableView(ops_, tr("Found ops"), tabs_);
    ops_view_->setObjectName(QStringLiteral("ops"));
    storages_view_ = new TableView(storages_, tr("Found storages"), tabs_);
    storages_view_->setObjectName(QStringLiteral("storages"));
    tabs_->addTab(ops_view_, tr("Ops"));
    tabs_->addTab(storages_view_, tr("Storages"));
    tabs_->setObjectName(QStringLiteral("tabs"));
    tabs_->setDocumentMode(true);
    body()->addWidget(tabs_, 1);
    // Facts are read for what is shown only, so that nothing but the order of time is known of all.
    for (TableView* view : {ops_view_, storages_view_}) {
      view->setSortingEnabled(false);
      connect(view, &TableView::lines_shown, this, [this] { read_facts(); });
      connect(view, &TableView::failed, this, [this](const QString& sentence) { set_status(sentence); });
    }
    const auto go = [this](std::size_t row) { go_to_op(row); };
    connect(ops_view_, &TableView::chosen, this, go);
    connect(ops_view_, &TableView::entered_row, this, go);
    const auto choose = [this](std::size_t row) { workspace().select_storage(storages_.found()[row]); };
    connect(storages_view_, &TableView::chosen, this, choose);
    connect(storages_view_, &TableView::entered_row, this, choose);
    update_when_loaded();
    connect(&workspace(), &Workspace::runs_changed, this, [this] { asked_.clear(); });
    setFocusProxy(text_);
  }

 protected:
  void update_content() override {
    if (!workspace().has_run()) {
      show_results({});
      counts_->clear();
      return set_status(tr("No run is open."));
    }
    if (asked_ != text_->text()) return search_now();
    read_facts();
  }

  bool eventFilter(QObject* object, QEvent* event) override {
    if (object != text_ || event->type() != QEvent::KeyPress) return Panel::eventFilter(object, event);
    const auto* key = static_cast<QKeyEvent*>(event);
    switch (key->key()) {
      case Qt::Key_Return:
      case Qt::Key_Enter:
        step(key->modifiers() & Qt::ShiftModifier ? -1 : 1);
        return true;
      case Qt::Key_Down:
        (tabs_->currentWidget() == ops_view_ ? ops_view_ : storages_view_)->setFocus();
        return true;
      default:
        return Panel::eventFilter(object, event);
    }
  }

 private:
  void add_controls() {
    auto* line = new QHBoxLayout;
    body()->addLayout(line);
    text_ = new QLineEdit(this);
    text_->setObjectName(QStringLiteral("search"));
    text_->setAccessibleName(tr("Search for ops and storages"));
    text_->setPlaceholderText(tr("Words of a name, operator or module; #123 for an op, \"storage 45\""));
    text_->setClearButtonEnabled(true);
    text_->installEventFilter(this);
    line->addWidget(text_, 1);
    auto* previous = add_button(line, tr("Previous"), tr("Previous result (Shift+Enter)"), [this] { step(-1); });
    auto* next = add_button(line, tr("Next"), tr("Next result (Enter)"), [this] { step(1); });
    previous->setObjectName(QStringLiteral("previous"));
    next->setObjectName(QStringLiteral("next"));
    counts_ = new QLabel(this);
    counts_->setObjectName(QStringLiteral("counts"));
    counts_->setWordWrap(true);
    counts_->setMinimumWidth(1);
    body()->addWidget(counts_);
    typing_.setSingleShot(true);
    typing_.setInterval(kTypingMilliseconds);
    connect(&typing_, &QTimer::timeout, this, [this] { search_now(); });
    connect(text_, &QLineEdit::textChanged, this, [this] {
      step_after_ = 0;
      typing_.start();
    });
  }

  void search_now() {
    typing_.stop();
    if (!workspace().has_run() || asked_ == text_->text()) return;
    asked_ = text_->text();
    if (asked_.trimmed().isEmpty()) {
      discard_work(QStringLiteral("search"));
      counts_->clear();
      set_status({});
      return show_results({});
    }
    run_in_background<SearchResult>(
        tr("Searching"), QStringLiteral("search"),
        [runs = workspace().state().runs, text = asked_.toStdString()](const LoadProgress& progress) {
          SearchResult all;
          for (std::uint8_t number = 0; number < runs.size(); ++number) {
            SearchResult found = search(runs[number], number, text, [&](double done) {
              return progress((number + done) / static_cast<double>(runs.size()));
            });
            all.ops.insert(all.ops.end(), found.ops.begin(), found.ops.end());
            all.storages.insert(all.storages.end(), found.storages.begin(), found.storages.end());
            all.complete = all.complete && found.complete;
          }
          return all;
        },
        [this](SearchResult result) {
          say_counts(result);
          show_results(std::move(result));
          if (const int by = std::exchange(step_after_, 0); by != 0) step(by);
        });
  }

  void say_counts(const SearchResult& result) {
    if (result.ops.empty() && result.storages.empty())
      return counts_->setText(tr("Nothing has all of these words in its name, operator or module."));
    const QString ops = count_text(result.ops.size()), storages = count_text(result.storages.size());
    counts_->setText(
        result.complete
            ? tr("%1 ops and %2 storages").arg(ops, storages)
            : tr("The first %1 ops and %2 storages of more: add a word to see the others").arg(ops, storages));
  }

  void show_results(SearchResult result) {
    const auto& runs = workspace().state().runs;
    std::vector<std::pair<QString, Time>> names;
    for (const OpenRun& run : runs) names.emplace_back(text_of(run.title()), run.whole().end);
    const bool only_storages = result.ops.empty() && !result.storages.empty();
    workspace().set_found(result.ops);
    ops_.show(std::move(result.ops), names);
    storages_.show(std::move(result.storages), names);
    tabs_->setTabText(0, ops_.rows() == 0 ? tr("Ops") : tr("Ops (%1)").arg(count_text(ops_.rows())));
    tabs_->setTabText(1,
                      storages_.rows() == 0 ? tr("Storages") : tr("Storages (%1)").arg(count_text(storages_.rows())));
    if (only_storages) tabs_->setCurrentIndex(1);
    if (ops_.rows() > 0) tabs_->setCurrentIndex(0);
    ops_view_->setColumnHidden(FoundOpsTable::which_run, runs.size() < 2);
    storages_view_->setColumnHidden(FoundStoragesTable::which_run, runs.size() < 2);
    read_facts();
  }

  // Enter goes to the next result: after the chosen op, in time; from the last to the first.
  void step(int by) {
    if (asked_ != text_->text()) {
      search_now();
      if (asked_.trimmed().isEmpty()) return;
      step_after_ = by;
      return;
    }
    TableView* const view = tabs_->currentWidget() == storages_view_ ? storages_view_ : ops_view_;
    const std::size_t count = view == ops_view_ ? ops_.rows() : storages_.rows();
    if (count == 0) return;
    std::size_t next = by > 0 ? 0 : count - 1;
    if (const auto current = view->current_row()) {
      next = by > 0 ? (*current + 1) % count : (*current + count - 1) % count;
      if ((by > 0 && next == 0) || (by < 0 && *current == 0))
        workspace().say(by > 0 ? tr("That was the last one; on from the first.")
                               : tr("That was the first one; on from the last."));
    } else if (view == ops_view_) {
      next = beside_chosen_op(by);
    }
    view->choose(next);
    if (view == ops_view_) {
      go_to_op(next);
    } else {
      workspace().select_storage(storages_.found()[next]);
    }
  }

  std::size_t beside_chosen_op(int by) const {
    const auto& ops = ops_.found();
    const auto chosen = workspace().state().selection.op;
    if (!chosen) return by > 0 ? 0 : ops.size() - 1;
    const auto order = [](const OpRef& a, const OpRef& b) { return std::pair(a.run, a.op) < std::pair(b.run, b.op); };
    const auto after = std::upper_bound(ops.begin(), ops.end(), *chosen, order);
    if (by > 0) return after == ops.end() ? 0 : static_cast<std::size_t>(after - ops.begin());
    const auto at = std::lower_bound(ops.begin(), ops.end(), *chosen, order);
    return at == ops.begin() ? ops.size() - 1 : static_cast<std::size_t>(at - ops.begin()) - 1;
  }

  void go_to_op(std::size_t row) { workspace().go_to(ops_.found()[row]); }

  void read_facts() {
    if (ops_.rows() > 0) read_facts(ops_, *ops_view_, ops_.found(), QStringLiteral("ops"));
    if (storages_.rows() > 0) read_facts(storages_, *storages_view_, storages_.found(), QStringLiteral("storages"));
  }

  template <class Table, class Reference>
  void read_facts(Table& table, TableView& view, const std::vector<Reference>& references, const QString& key) {
    const int first = std::max(0, view.rowAt(0)), last = view.rowAt(view.viewport()->height() - 1);
    const std::vector<std::size_t> rows =
        table.unknown_of_lines(first, last < 0 ? table.lines() : std::min(last, first + 200));
    if (rows.empty()) return;
    std::vector<std::pair<std::size_t, Reference>> wanted;
    for (const std::size_t row : rows) wanted.emplace_back(row, references[row]);
    using Fact = decltype(facts_of(std::declval<OpenRun>(), std::declval<Reference>()));
    using Facts = std::vector<std::pair<std::size_t, Fact>>;
    run_in_background<Facts>(
        tr("Reading what was found"), key,
        [runs = workspace().state().runs, wanted](const LoadProgress& progress) {
          Facts facts;
          for (const auto& [row, reference] : wanted) {
            if (!progress(0)) throw LoadCancelled{};
            facts.emplace_back(row, facts_of(runs[reference.run], reference));
          }
          return facts;
        },
        [&table, &view, wanted, &references](Facts facts) {
          // Another search may have come in between: facts belong to rows of this one.
          for (const auto& [row, reference] : wanted)
            if (row >= references.size() || !(references[row] == reference)) return;
          table.add_facts(facts);
          view.fit_columns(0);
        },
        true);
  }

  FoundOpsTable ops_;
  FoundStoragesTable storages_;
  QString asked_;
  QTimer typing_;
  int step_after_ = 0;  // where to go once the search is done: Enter was quicker
  QLineEdit* text_ = nullptr;
  QLabel* counts_ = nullptr;
  QTabWidget* tabs_ = nullptr;
  TableView *ops_view_ = nullptr, *storages_view_ = nullptr;
};

}  // namespace

QWidget* make_search_panel(Workspace& workspace, QWidget* parent) { return new SearchPanel(workspace, parent); }

}  // namespace memwall::gui
