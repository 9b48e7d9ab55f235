// Peak: why a tier gets as full as it does, and what fills it.
#include <QComboBox>
#include <QHBoxLayout>
#include <QToolButton>
#include <QVBoxLayout>

#include <algorithm>

#include "gui/model/peak_explanation.h"
#include "gui/model/storage_name.h"
#include "gui/view/panels/panel.h"
#include "gui/view/panels/panels.h"
#include "gui/view/panels/reference_browser.h"
#include "gui/view/value_text.h"

namespace memwall::gui {
namespace {

struct LargestStorage {
  StorageId storage = kNoStorage;
  Bytes bytes = 0;
  StorageKind kind = StorageKind::unknown;
  StorageName name;
};

struct ExplainedPeak {
  PeakExplanation explanation;
  std::vector<LargestStorage> largest;
};

ExplainedPeak explained(const OpenRun& run, std::uint32_t tier) {
  ExplainedPeak peak{explain_peak(run, tier), {}};
  const StorageColumns& storages = run.history->storages();
  for (const StorageId id : peak.explanation.largest)
    peak.largest.push_back({id, storages.bytes[id], storages.kind[id], name_of(run, id)});
  return peak;
}

class PeakPanel : public Panel {
 public:
  PeakPanel(Workspace& the_workspace, QWidget* parent) : Panel(the_workspace, tr("Peak"), parent) {
    auto* line = new QHBoxLayout;
    body()->addLayout(line);
    add_run_choice(line);
    tier_ = new QComboBox(this);
    tier_->setObjectName(QStringLiteral("tier"));
    tier_->setAccessibleName(tr("Tier"));
    line->addWidget(tier_);
    connect(tier_, &QComboBox::currentIndexChanged, this, [this] { content_changed(); });
    jump_ = add_button(line, tr("Jump to peak"), tr("Puts the cursor at the peak of this tier"),
                       [this] { workspace().go_to_time(canvas_time()); });
    jump_->setObjectName(QStringLiteral("jump"));
    line->addStretch(1);
    text_ = new ReferenceBrowser(workspace(), tr("Explanation of the peak"), this);
    text_->setObjectName(QStringLiteral("text"));
    body()->addWidget(text_, 1);
    update_when_loaded();
    need_history();
    connect(&workspace(), &Workspace::theme_changed, this, [this] { show_peak(true); });
    update_when_shifted();
  }

 protected:
  void update_content() override {
    if (run() == nullptr) return show_nothing(tr("No run is open."));
    if (known_source_ != run()->source.get()) {
      known_source_ = run()->source.get();
      fill_tiers();
    }
    jump_->setEnabled(tier_->count() > 0);
    if (!run()->outline().run.trace->knowledge.allocations)
      return show_nothing(tr("Not recorded: the capture does not say what takes memory."));
    if (tier_->count() == 0) return show_nothing(tr("No tier holds anything in this run."));
    if (!run()->history) return show_nothing(tr("Reading who lives where…"));
    const std::uint32_t tier = tier_->currentData().toUInt();
    const auto asked = std::pair<const void*, std::uint32_t>(run()->history.get(), tier);
    if (asked == asked_) return show_peak(true);
    asked_ = asked;
    run_in_background<ExplainedPeak>(
        tr("Working out what the peak is made of"), QStringLiteral("peak"),
        [open = *run(), tier](const LoadProgress&) { return explained(open, tier); },
        [this](ExplainedPeak peak) {
          peak_ = std::move(peak);
          show_peak(false);
        });
  }

  void start_over() override { asked_ = {}; }

 private:
  void fill_tiers() {
    const QSignalBlocker quiet(tier_);
    const QString before = tier_->currentText();
    tier_->clear();
    const Run& outline = run()->outline().run;
    for (std::size_t t = 0; t < outline.machine.tiers.size() && t < outline.result.tiers.size(); ++t)
      if (outline.result.tiers[t].peak_allocated > 0)
        tier_->addItem(text_of(outline.machine.tiers[t].name), static_cast<uint>(t));
    tier_->setCurrentIndex(std::max(0, tier_->findText(before)));
  }

  void show_nothing(const QString& why) {
    discard_work(QStringLiteral("peak"));
    asked_ = {};
    peak_.reset();
    jump_->setEnabled(run() != nullptr && tier_->count() > 0);
    text_->clear();
    set_status(why);
  }

  // When the peak is, where the canvas draws it.
  Time canvas_time() const {
    return run()->outline().run.result.tiers[tier_->currentData().toUInt()].peak_time + shift();
  }

  void show_peak(bool stay) {
    if (!peak_ || run() == nullptr) return;
    QString html = QStringLiteral("<p>%1</p>")
                       .arg(ReferenceBrowser::link(
                           canvas_time(), tr("Peak at %1 by the allocator's (host) clock")
                                              .arg(instant_text(peak_->explanation.time, run()->whole().end))));
    std::size_t linked = 0;
    for (const std::string& sentence : peak_->explanation.sentences) {
      // "3. 1.2 GB, activation: ..." is the third of the largest.
      const bool is_next = linked < peak_->largest.size() && sentence.starts_with(std::to_string(linked + 1) + ". ");
      const QString text = text_of(sentence);
      html += QStringLiteral("<p>%1</p>")
                  .arg(is_next ? ReferenceBrowser::link(StorageRef{run_number(), peak_->largest[linked].storage}, text)
                               : text.toHtmlEscaped());
      linked += is_next ? 1 : 0;
    }
    if (linked == peak_->largest.size()) return text_->show_html(html, stay);
    if (!peak_->largest.empty())
      html += QStringLiteral(
                  "<h3>%1</h3><table cellspacing=\"0\"><tr><th>%2</th><th align=\"right\">%3</th>"
                  "<th>%4</th><th>%5</th><th>%6</th></tr>")
                  .arg(tr("The largest storages"), tr("Storage"), tr("Bytes"), tr("Kind"), tr("Made in"), tr("Module"));
    for (const LargestStorage& storage : peak_->largest) {
      const QString name =
          storage.name.label.empty() ? tr("storage %1").arg(storage.storage) : text_of(storage.name.label);
      const QString phase = storage.name.phase == Phase::unknown ? QString() : text_of(to_string(storage.name.phase));
      html +=
          QStringLiteral("<tr><td>%1</td><td align=\"right\">%2</td><td>%3</td><td>%4</td><td>%5</td></tr>")
              .arg(ReferenceBrowser::link(StorageRef{run_number(), storage.storage}, name), bytes_text(storage.bytes),
                   text_of(to_string(storage.kind)), phase, text_of(storage.name.module).toHtmlEscaped());
    }
    if (!peak_->largest.empty()) html += QStringLiteral("</table>");
    text_->show_html(html, stay);
  }

  QComboBox* tier_ = nullptr;
  QToolButton* jump_ = nullptr;
  ReferenceBrowser* text_ = nullptr;
  const void* known_source_ = nullptr;
  std::pair<const void*, std::uint32_t> asked_{};
  std::optional<ExplainedPeak> peak_;
};

}  // namespace

QWidget* make_peak_panel(Workspace& workspace, QWidget* parent) { return new PeakPanel(workspace, parent); }

}  // namespace memwall::gui
