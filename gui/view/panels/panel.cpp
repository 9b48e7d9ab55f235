#include "gui/view/panels/panel.h"

#include <QComboBox>
#include <QHBoxLayout>
#include <QLabel>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>

#include "gui/view/value_text.h"
#include "sim/error.h"

namespace memwall::gui {

Panel::Panel(Workspace& workspace, const QString& name, QWidget* parent) : QWidget(parent), workspace_(workspace) {
  setObjectName(name);
  setAccessibleName(name);
  auto* outer = new QVBoxLayout(this);
  outer->setContentsMargins(4, 4, 4, 4);
  outer->setSpacing(4);
  body_ = new QVBoxLayout;
  body_->setSpacing(4);
  outer->addLayout(body_, 1);
  status_ = new QLabel(this);
  status_->setObjectName(QStringLiteral("status"));
  status_->setWordWrap(true);
  status_->setTextInteractionFlags(Qt::TextBrowserInteraction);
  connect(status_, &QLabel::linkActivated, this, [this] {
    workspace_.load_again();
    start_over();
    content_changed();
  });
  status_->setMinimumWidth(1);
  outer->addWidget(status_);
  connect(&workspace_, &Workspace::runs_changed, this, [this] { runs_changed(); });
  connect(&workspace_.background(), &Background::finished, this, [this] { stopped(); });
}

void Panel::content_changed() {
  stale_ = true;
  if (is_seen()) catch_up();
}

// Behind another tab a panel is visible to the toolkit, though not to anybody: it has been moved out of the window.
bool Panel::is_seen() const { return isVisible() && !visibleRegion().isEmpty(); }

void Panel::catch_up() {
  if (!stale_ || !is_seen()) return;
  stale_ = false;
  update_content();
  offer_history();
}

void Panel::update_when_loaded() {
  // Blocks of spans that were read are told by the same signal, many times a second.
  connect(&workspace_, &Workspace::loaded, this, [this] {
    std::vector<const void*> now{workspace_.state().comparison.get()};
    for (const OpenRun& open : workspace_.state().runs) {
      now.push_back(open.history.get());
      now.push_back(open.analysis.get());
    }
    if (now == loaded_) return;
    loaded_ = std::move(now);
    content_changed();
  });
}

void Panel::update_when_shifted() {
  connect(&workspace_, &Workspace::rows_changed, this, [this] {
    if (shift_ == workspace_.state().shift) return;
    shift_ = workspace_.state().shift;
    content_changed();
  });
}

// While docks are arranged, panels are shown that are behind others a moment later.
void Panel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  QTimer::singleShot(0, this, [this] { catch_up(); });
}

// A tab that comes to the front tells its panel nothing else.
void Panel::paintEvent(QPaintEvent* event) {
  QWidget::paintEvent(event);
  if (stale_) QTimer::singleShot(0, this, [this] { catch_up(); });
}

std::uint8_t Panel::run_number() const {
  const int chosen = run_choice_ == nullptr ? 0 : run_choice_->currentIndex();
  return chosen > 0 && static_cast<std::size_t>(chosen) < workspace_.state().runs.size() ? 1 : 0;
}

const OpenRun* Panel::run() const {
  const auto& runs = workspace_.state().runs;
  return runs.empty() ? nullptr : &runs[run_number()];
}

Duration Panel::shift() const { return run_number() == 0 ? Duration{} : workspace_.state().shift; }

void Panel::add_run_choice(QHBoxLayout* line) {
  run_choice_ = new QComboBox(this);
  run_choice_->setObjectName(QStringLiteral("run"));
  run_choice_->setAccessibleName(tr("Run"));
  run_choice_->setMinimumContentsLength(8);
  run_choice_->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  line->addWidget(run_choice_, 1);
  connect(run_choice_, &QComboBox::currentIndexChanged, this, [this] { content_changed(); });
  runs_changed();
}

void Panel::runs_changed() {
  if (run_choice_ != nullptr) {
    const QSignalBlocker quiet(run_choice_);
    run_choice_->clear();
    for (const OpenRun& open : workspace_.state().runs) run_choice_->addItem(text_of(open.title()));
    run_choice_->setVisible(run_choice_->count() > 1);
  }
  for (const auto& [key, turn] : std::map(waiting_)) discard_work(key);
  content_changed();
}

std::uint64_t Panel::begin_work(const QString& key, const QString& what, bool quiet) {
  // The status takes room, so views are resized, and may begin other work before this returns.
  const std::uint64_t turn = ++turn_;
  turns_[key] = turn;
  waiting_.erase(key);
  if (quiet) return turn;
  waiting_[key] = turn;
  set_status(what + QStringLiteral("…"));
  return turn;
}

void Panel::start_work(const QString& what, const QString& key, std::uint64_t turn, Background::Work work,
                       bool urgent) {
  // The panel may be gone when the work is done; it is looked at on the thread of the window only.
  const QPointer<Panel> panel(this);
  const auto say = [panel, key, turn](const QString& sentence) {
    return std::function<void()>([panel, key, turn, sentence] {
      if (panel && panel->end_work(key, turn)) panel->set_status(sentence);
    });
  };
  workspace_.background().start(
      what,
      [panel, key, turn, say, work = std::move(work)](const LoadProgress& progress) -> std::function<void()> {
        try {
          auto show = work(progress);
          return [panel, key, turn, show] {
            if (panel && panel->end_work(key, turn)) show();
          };
        } catch (const InputError& error) {
          return say(QString::fromUtf8(error.what()));
        } catch (const UsageError& error) {
          return say(QString::fromUtf8(error.what()));
        }
      },
      objectName() + QLatin1Char('/') + key, urgent);
}

bool Panel::end_work(const QString& key, std::uint64_t turn) {
  if (turns_[key] != turn) return false;
  if (waiting_.erase(key) > 0) set_status({});
  return true;
}

void Panel::discard_work(const QString& key) {
  turns_[key] = ++turn_;
  waiting_.erase(key);
}

void Panel::stopped() {
  // Nothing runs any more, and yet something is waited for: it was cancelled.
  if (!waiting_.empty()) offer_again();
  waiting_.clear();
  offer_history();
}

// A history whose reading was stopped comes by itself no more.
void Panel::offer_history() {
  if (needs_history_ && run() != nullptr && !run()->history && workspace_.history_stopped()) offer_again();
}

void Panel::offer_again() {
  status_->setTextFormat(Qt::RichText);
  status_->setText(tr("Stopped before it was done.") +
                   QStringLiteral(" <a href=\"again\">%1</a>").arg(tr("Try again")));
  status_->setVisible(true);
}

void Panel::set_status(const QString& text) {
  status_->setTextFormat(Qt::PlainText);
  status_->setText(text);
  status_->setVisible(!text.isEmpty());
}

QToolButton* add_button(QHBoxLayout* line, const QString& text, const QString& meaning, std::function<void()> clicked) {
  auto* button = new QToolButton(line->parentWidget());
  button->setText(text);
  button->setToolTip(meaning);
  button->setAccessibleName(meaning);
  button->setFocusPolicy(Qt::StrongFocus);
  QObject::connect(button, &QToolButton::clicked, button, std::move(clicked));
  line->addWidget(button);
  return button;
}

}  // namespace memwall::gui
