// Details: all about the op or the storage that was chosen last, with links, and the way back.
#include <QApplication>
#include <QClipboard>
#include <QHBoxLayout>
#include <QShortcut>
#include <QToolButton>
#include <QVBoxLayout>

#include <variant>

#include "gui/model/details.h"
#include "gui/view/panels/panel.h"
#include "gui/view/panels/panels.h"
#include "gui/view/panels/reference_browser.h"
#include "gui/view/panels/summary_text.h"
#include "gui/view/value_text.h"

namespace memwall::gui {
namespace {

using Subject = std::variant<OpRef, StorageRef>;
constexpr std::size_t kMostVisited = 200;

std::uint8_t run_of(const Subject& subject) {
  return std::visit([](const auto& reference) { return reference.run; }, subject);
}

QString html_of(const DetailLine& line) {
  const QString value = text_of(line.value);
  QString cell = value.toHtmlEscaped();
  if (line.op) cell = ReferenceBrowser::link(*line.op, value);
  if (line.storage) cell = ReferenceBrowser::link(*line.storage, value);
  if (line.name.empty()) return QStringLiteral("<tr><td colspan=\"2\">%1</td></tr>").arg(cell);
  return QStringLiteral("<tr><td class=\"faint\">%1</td><td>%2</td></tr>")
      .arg(text_of(line.name).toHtmlEscaped(), cell);
}

QString html_of(const std::vector<DetailSection>& sections) {
  QString html;
  for (const DetailSection& section : sections) {
    if (!section.title.empty()) html += QStringLiteral("<h3>%1</h3>").arg(text_of(section.title).toHtmlEscaped());
    html += QStringLiteral("<table cellspacing=\"0\">");
    for (const DetailLine& line : section.lines) html += html_of(line);
    html += QStringLiteral("</table>");
  }
  return html;
}

class DetailsPanel : public Panel {
 public:
  DetailsPanel(Workspace& the_workspace, QWidget* parent) : Panel(the_workspace, tr("Details"), parent) {
    auto* line = new QHBoxLayout;
    body()->addLayout(line);
    back_ = add_button(line, tr("Back"), tr("Back to what was looked at before (Alt+Left)"), [this] { travel(-1); });
    forward_ = add_button(line, tr("Forward"), tr("Forward again (Alt+Right)"), [this] { travel(1); });
    line->addStretch(1);
    copy_ = add_button(line, tr("Copy"), tr("Copy all of it as text"), [this] { copy(); });
    back_->setObjectName(QStringLiteral("back"));
    forward_->setObjectName(QStringLiteral("forward"));
    copy_->setObjectName(QStringLiteral("copy"));
    for (const auto& [key, by] : {std::pair{Qt::Key_Left, -1}, std::pair{Qt::Key_Right, 1}}) {
      auto* shortcut = new QShortcut(QKeySequence(Qt::ALT | key), this);
      shortcut->setContext(Qt::WidgetWithChildrenShortcut);
      connect(shortcut, &QShortcut::activated, this, [this, way = by] { travel(way); });
    }
    text_ = new ReferenceBrowser(workspace(), tr("Details"), this);
    text_->setObjectName(QStringLiteral("text"));
    body()->addWidget(text_, 1);
    update_on(&Workspace::selection_changed);
    update_when_loaded();
    update_when_shifted();
    connect(&workspace(), &Workspace::theme_changed, this,
            [this] { visited_.empty() ? show_first_look() : show_sections(true); });
    // Followed also while the panel is hidden: what was looked at meanwhile is in the way back.
    connect(&workspace(), &Workspace::selection_changed, this, [this] { follow_selection(); });
    connect(&workspace(), &Workspace::runs_changed, this, [this] {
      visited_.clear();
      shown_.reset();
      seen_ = {};
    });
  }

 protected:
  void update_content() override {
    follow_selection();
    back_->setEnabled(at_ > 0 && !visited_.empty());
    forward_->setEnabled(at_ + 1 < visited_.size());
    copy_->setEnabled(false);
    if (run() == nullptr || visited_.empty()) return show_first_look();
    const Subject subject = visited_[at_];
    const OpenRun open = workspace().state().runs[run_of(subject)];
    need_history(std::holds_alternative<StorageRef>(subject));
    if (std::holds_alternative<StorageRef>(subject) && !open.history) {
      discard_work(QStringLiteral("details"));
      return set_status(tr("Reading who lives where…"));
    }
    copy_->setEnabled(!sections_.empty());
    if (shown_ == subject && history_ == open.history.get()) return;
    const bool stay = shown_ == subject;  // more is known of it, but it is read already
    shown_ = subject;
    history_ = open.history.get();
    run_in_background<std::vector<DetailSection>>(
        tr("Reading details"), QStringLiteral("details"),
        [open, subject](const LoadProgress&) {
          return std::visit([&](const auto& reference) { return details_of(open, reference); }, subject);
        },
        [this, stay](std::vector<DetailSection> sections) {
          sections_ = std::move(sections);
          copy_->setEnabled(true);
          show_sections(stay);
        });
  }

  void start_over() override { shown_.reset(); }

 private:
  // Before anything is chosen: what the runs come to, and what to do next.
  void show_first_look() {
    need_history(false);
    discard_work(QStringLiteral("details"));
    shown_.reset();
    sections_.clear();
    if (run() == nullptr) {
      text_->clear();
      return set_status(tr("No run is open."));
    }
    const auto& runs = workspace().state().runs;
    QString html;
    for (std::size_t i = 0; i < runs.size(); ++i)
      html += first_look_html(runs[i], i == 0 ? Duration{} : workspace().state().shift);
    html += QStringLiteral("<p class=\"faint\">%1</p>")
                .arg(tr("Click a span: what it is, what it waited for, and its storages stand here. "
                        "Drag: statistics of a range. P goes to the peak, Q shows the critical path, / searches, "
                        "? lists all keys."));
    text_->show_html(html);
    set_status({});
  }

  void show_sections(bool stay) { text_->show_html(html_of(sections_), stay); }

  // Of op and storage, what changed last is looked at.
  void follow_selection() {
    const Selection& now = workspace().state().selection;
    const bool new_op = now.op != seen_.op, new_storage = now.storage != seen_.storage;
    seen_ = now;
    if (new_storage && now.storage) return visit(*now.storage);
    if (new_op && now.op) return visit(*now.op);
    if (new_storage && now.op) return visit(*now.op);
    if (new_op && now.storage) return visit(*now.storage);
  }

  void visit(const Subject& subject) {
    if (!visited_.empty() && visited_[at_] == subject) return;
    if (!visited_.empty()) visited_.erase(visited_.begin() + static_cast<std::ptrdiff_t>(at_) + 1, visited_.end());
    visited_.push_back(subject);
    if (visited_.size() > kMostVisited) visited_.erase(visited_.begin());
    at_ = visited_.size() - 1;
  }

  void travel(int by) {
    if (visited_.empty() || (by < 0 && at_ == 0) || (by > 0 && at_ + 1 >= visited_.size())) return;
    at_ += static_cast<std::size_t>(by);
    // The selection follows; that it does is no further visit.
    const Subject subject = visited_[at_];
    if (const auto* op = std::get_if<OpRef>(&subject)) workspace().go_to(*op);
    if (const auto* storage = std::get_if<StorageRef>(&subject)) workspace().select_storage(*storage);
    content_changed();
  }

  void copy() {
    QApplication::clipboard()->setText(QString::fromStdString(to_text(sections_)));
    workspace().say(tr("The details are in the clipboard."));
  }

  ReferenceBrowser* text_ = nullptr;
  QToolButton *back_ = nullptr, *forward_ = nullptr, *copy_ = nullptr;
  std::vector<Subject> visited_;
  std::size_t at_ = 0;  // in visited_
  Selection seen_;
  std::optional<Subject> shown_;
  const void* history_ = nullptr;
  std::vector<DetailSection> sections_;
};

}  // namespace

QWidget* make_details_panel(Workspace& workspace, QWidget* parent) { return new DetailsPanel(workspace, parent); }

}  // namespace memwall::gui
