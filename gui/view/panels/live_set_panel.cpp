// Live set: what lives in a tier at the cursor, as a treemap and as a table.
#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QResizeEvent>
#include <QSplitter>
#include <QVBoxLayout>

#include <algorithm>

#include "gui/view/panels/live_set_table.h"
#include "gui/view/panels/panel.h"
#include "gui/view/panels/panels.h"
#include "gui/view/panels/table_view.h"
#include "gui/view/panels/treemap_view.h"
#include "gui/view/value_text.h"

namespace memwall::gui {
namespace {

// Names of hidden rows are read in batches that double, so that a filter is applied anew a few times only.
constexpr std::size_t kFirstBatch = 1024, kMostBatch = 65536;
// Names that the treemap may be asked for soon.
constexpr std::size_t kLargest = 100;

class LiveSetPanel : public Panel {
 public:
  LiveSetPanel(Workspace& the_workspace, QWidget* parent) : Panel(the_workspace, tr("Live set"), parent) {
    add_controls();
    add_views();
    update_on(&Workspace::selection_changed);
    update_when_loaded();
    need_history();
    update_when_shifted();
    connect(&workspace(), &Workspace::theme_changed, this, [this] { treemap_->set_theme(workspace().theme()); });
    treemap_->set_theme(workspace().theme());
  }

 protected:
  // What was asked for last; asked anew where one of it changes.
  struct Asked {
    const void* history = nullptr;
    std::uint8_t run = 0;
    std::uint32_t tier = 0;
    Time time{};
    bool operator==(const Asked&) const = default;
  };

  void update_content() override {
    if (run() == nullptr) return show_nothing(tr("No run is open."));
    if (known_source_ != run()->source.get()) {
      known_source_ = run()->source.get();
      table_.forget_names();
      fill_tiers();
    }
    if (!run()->outline().run.trace->knowledge.allocations)
      return show_nothing(tr("Not recorded: the capture does not say what takes memory."));
    if (!run()->history) return show_nothing(tr("Reading who lives where…"));
    if (tier_->count() == 0) return show_nothing(tr("No tier holds anything in this run."));
    show_selected();
    const Asked asked{run()->history.get(), run_number(), tier_->currentData().toUInt(), instant()};
    if (asked == asked_) return;
    asked_ = asked;
    run_in_background<TierLiveSet>(
        tr("Looking who lives there"), QStringLiteral("set"),
        [open = *run(), asked](const LoadProgress&) { return live_set(open, asked.tier, asked.time); },
        [this](TierLiveSet set) { show_set(std::move(set)); });
  }

  void resizeEvent(QResizeEvent* event) override {
    Panel::resizeEvent(event);
    views_->setOrientation(width() > 1.6 * height() ? Qt::Horizontal : Qt::Vertical);
  }

  void start_over() override { asked_ = {}; }

 private:
  void add_controls() {
    auto* line = new QHBoxLayout;
    body()->addLayout(line);
    add_run_choice(line);
    tier_ = new QComboBox(this);
    tier_->setObjectName(QStringLiteral("tier"));
    tier_->setAccessibleName(tr("Tier"));
    tier_->setToolTip(tr("The tier whose contents are shown"));
    line->addWidget(tier_);
    connect(tier_, &QComboBox::currentIndexChanged, this, [this] { content_changed(); });
    filter_ = new QLineEdit(this);
    filter_->setObjectName(QStringLiteral("filter"));
    filter_->setAccessibleName(tr("Filter"));
    filter_->setPlaceholderText(tr("Filter by name, kind, module, phase"));
    filter_->setClearButtonEnabled(true);
    line->addWidget(filter_, 2);
    connect(filter_, &QLineEdit::textChanged, this, [this] {
      table_.filter(filter_->text());
      batch_ = kFirstBatch;
      read_names();
    });
    totals_ = new QLabel(this);
    totals_->setObjectName(QStringLiteral("totals"));
    totals_->setWordWrap(true);
    totals_->setMinimumWidth(1);
    totals_->setTextInteractionFlags(Qt::TextSelectableByMouse);
    body()->addWidget(totals_);
  }

  void add_views() {
    views_ = new QSplitter(Qt::Vertical, this);
    views_->setChildrenCollapsible(true);
    treemap_ = new TreemapView(views_);
    view_ = new TableView(table_, tr("Live set"), views_);
    view_->setObjectName(QStringLiteral("table"));
    views_->addWidget(treemap_);
    views_->addWidget(view_);
    views_->setStretchFactor(0, 2);
    views_->setStretchFactor(1, 3);
    body()->addWidget(views_, 1);
    connect(view_, &TableView::chosen, this, [this](std::size_t row) { choose(row); });
    connect(view_, &TableView::entered_row, this, [this](std::size_t row) { show_life(row); });
    connect(view_, &TableView::failed, this, [this](const QString& sentence) { set_status(sentence); });
    connect(view_, &TableView::lines_shown, this, [this] { read_names(); });
    connect(treemap_, &TreemapView::chosen, this, [this](std::size_t row) { choose(row); });
    connect(treemap_, &TreemapView::entered_row, this, [this](std::size_t row) { show_life(row); });
    connect(treemap_, &TreemapView::resized, this, [this] { make_tiles(); });
    treemap_->set_words([this](std::size_t row) { return words_of(row); });
  }

  void fill_tiers() {
    const QSignalBlocker quiet(tier_);
    const QString before = tier_->currentText();
    tier_->clear();
    const Run& outline = run()->outline().run;
    for (std::size_t t = 0; t < outline.machine.tiers.size(); ++t) {
      const bool used = t < outline.result.tiers.size() && (outline.result.tiers[t].peak_allocated > 0 ||
                                                            outline.result.tiers[t].peak_usage.requested > 0);
      if (used) tier_->addItem(text_of(outline.machine.tiers[t].name), static_cast<uint>(t));
    }
    tier_->setCurrentIndex(std::max(0, tier_->findText(before)));
  }

  // The cursor, in the run's own time; without one the peak of the tier, so that there is something to see.
  Time instant() const {
    const auto cursor = workspace().state().selection.cursor;
    const std::uint32_t tier = tier_->currentData().toUInt();
    if (!cursor) return run()->outline().run.result.tiers[tier].peak_time;
    return std::clamp(*cursor - shift(), Time{}, run()->whole().end);
  }

  void show_nothing(const QString& why) {
    discard_work(QStringLiteral("set"));
    asked_ = {};
    table_.show(std::make_shared<TierLiveSet>(), Time{});
    treemap_->show_tiles(nullptr, {}, {});
    totals_->clear();
    set_status(why);
  }

  void show_set(TierLiveSet set) {
    const bool first = table_.rows() == 0;
    set_ = std::make_shared<const TierLiveSet>(std::move(set));
    table_.show(set_, run()->whole().end);
    if (first) view_->fit_columns(LiveSetTable::name);
    show_totals();
    show_names();
    show_selected();
    make_tiles();
    batch_ = kFirstBatch;
    read_names();
  }

  void show_totals() {
    const TierLiveSet& set = *set_;
    const bool chosen = workspace().state().selection.cursor.has_value();
    QString text = (chosen ? tr("At %1: ") : tr("At the peak, %1 (click into the canvas for another instant): "))
                       .arg(instant_text(set.time, run()->whole().end));
    text += tr("%1 storages, %2 requested").arg(count_text(set.rows.size()), bytes_text(set.requested));
    if (set.allocated > 0) text += tr(", %1 allocated").arg(bytes_text(set.allocated));
    if (set.reserved > 0) text += tr(", %1 reserved").arg(bytes_text(set.reserved));
    if (set.untracked > 0)
      text += tr("; %1 of the requested are not followed storage by storage").arg(bytes_text(set.untracked));
    totals_->setText(text);
  }

  void make_tiles() {
    if (!set_ || table_.rows() == 0) return treemap_->show_tiles(nullptr, {}, {});
    const QSizeF size = treemap_->size();
    run_in_background<std::vector<TreemapTile>>(
        tr("Arranging the treemap"), QStringLiteral("tiles"),
        [set = set_, size](const LoadProgress&) { return treemap(*set, size.width(), size.height()); },
        [this, set = set_, size](std::vector<TreemapTile> tiles) {
          if (set == set_) treemap_->show_tiles(set, std::move(tiles), size);
        },
        true);
  }

  void show_names() {
    std::map<StorageId, std::string> names;
    for (std::size_t row = 0; row < kLargest && row < table_.rows(); ++row)
      if (table_.knows(row)) names.emplace(set_->rows[row].storage, table_.text(row, LiveSetTable::name).toStdString());
    treemap_->set_names(std::move(names));
  }

  // Names of the lines that are shown, at once; all, in batches, where a filter or an order depends on them.
  void read_names() {
    if (!run() || !run()->history || table_.rows() == 0) return;
    const int first = std::max(0, view_->rowAt(0)), last = view_->rowAt(view_->viewport()->height() - 1);
    std::vector<StorageId> wanted = table_.unnamed_of_lines(first, last < 0 ? table_.lines() : last);
    const std::vector<StorageId> largest = table_.unnamed_of_largest(kLargest);
    wanted.insert(wanted.end(), largest.begin(), largest.end());
    if (wanted.size() > kMostBatch) wanted.resize(kMostBatch);
    if (!wanted.empty()) return start_names(std::move(wanted), QStringLiteral("names"), true);
    if (waiting()) return;
    if (!table_.needs_names()) return set_status({});
    wanted = table_.unnamed(batch_);
    if (wanted.empty()) return set_status({});
    batch_ = std::min(kMostBatch, batch_ * 2);
    start_names(std::move(wanted), QStringLiteral("all names"), false);
    set_status(tr("%1 of %2 names are read: filter and order tell of those so far…")
                   .arg(count_text(table_.named()), count_text(table_.rows())));
  }

  void start_names(std::vector<StorageId> wanted, const QString& key, bool urgent) {
    std::sort(wanted.begin(), wanted.end());
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    run_in_background<std::vector<NamedStorage>>(
        tr("Reading the names of storages"), key,
        [open = *run(), wanted](const LoadProgress& progress) {
          std::vector<NamedStorage> names;
          for (const StorageId storage : wanted) {
            names.push_back({storage, name_of(open, storage)});
            if (!progress(static_cast<double>(names.size()) / static_cast<double>(wanted.size())))
              throw LoadCancelled{};
          }
          return names;
        },
        [this, source = run()->source.get()](std::vector<NamedStorage> names) {
          if (run() == nullptr || run()->source.get() != source) return;
          const bool widths = table_.named() == 0;
          table_.add_names(names);
          if (widths) view_->fit_columns(LiveSetTable::name);
          show_names();
          show_selected();
          read_names();
        },
        urgent);
  }

  QString words_of(std::size_t row) const {
    const LiveRow& r = table_.set().rows[row];
    QString words;
    if (table_.knows(row)) words = table_.text(row, LiveSetTable::name) + '\n';
    words +=
        tr("%1, %2, %3 of the tier")
            .arg(bytes_text(r.bytes), text_of(to_string(r.kind)),
                 percent_text(static_cast<double>(r.bytes) / static_cast<double>(std::max<Bytes>(1, set_->requested))));
    return words + '\n' +
           tr("since %1, until %2").arg(table_.text(row, LiveSetTable::since), table_.text(row, LiveSetTable::until));
  }

  void choose(std::size_t row) { workspace().select_storage(StorageRef{run_number(), table_.set().rows[row].storage}); }

  void show_life(std::size_t row) {
    choose(row);
    const ResidencyHistory& history = *run()->history;
    std::optional<TimeRange> life;
    for (const std::uint32_t residency : history.life(table_.set().rows[row].storage)) {
      const Residency& r = history.residencies()[residency];
      if (!life) life = TimeRange{r.begin, r.end};
      life->end = std::max(life->end, std::min(r.end, run()->whole().end));
    }
    if (life) workspace().change_viewport([&](Viewport& v) { v.show({life->begin + shift(), life->end + shift()}); });
  }

  void show_selected() {
    const auto storage = workspace().state().selection.storage;
    const bool here = storage && storage->run == run_number();
    treemap_->set_selected(here ? std::optional(storage->storage) : std::nullopt);
    if (!here) return;
    const auto& rows = table_.set().rows;
    const auto found =
        std::find_if(rows.begin(), rows.end(), [&](const LiveRow& row) { return row.storage == storage->storage; });
    const auto row = static_cast<std::size_t>(found - rows.begin());
    if (found != rows.end() && view_->current_row() != row) view_->choose(row);
  }

  LiveSetTable table_;
  std::shared_ptr<const TierLiveSet> set_;
  const void* known_source_ = nullptr;
  Asked asked_;
  std::size_t batch_ = kFirstBatch;
  QComboBox* tier_ = nullptr;
  QLineEdit* filter_ = nullptr;
  QLabel* totals_ = nullptr;
  QSplitter* views_ = nullptr;
  TreemapView* treemap_ = nullptr;
  TableView* view_ = nullptr;
};

}  // namespace

QWidget* make_live_set_panel(Workspace& workspace, QWidget* parent) { return new LiveSetPanel(workspace, parent); }

}  // namespace memwall::gui
