// What the panels have in common: a line that says what is shown or waited for, the choice of the
// run where two are open, and work that is done in the background.
//
// A panel that is not visible does nothing; it catches up when it is shown.
#pragma once

#include <QPointer>
#include <QWidget>

#include <functional>
#include <map>
#include <vector>

#include "gui/view/workspace.h"

class QComboBox;
class QHBoxLayout;
class QLabel;
class QToolButton;
class QVBoxLayout;

namespace memwall::gui {

class Panel : public QWidget {
 public:
  // `name`: for those who cannot see it, and the prefix of the keys of its work.
  Panel(Workspace& workspace, const QString& name, QWidget* parent);

 protected:
  // Called while the panel is visible, whenever runs or one of the signals of update_on() say so. Quick.
  virtual void update_content() = 0;
  // Forgets what was asked for, so that update_content() asks again: its answer was cancelled.
  virtual void start_over() {}
  // Without the histories of the runs the panel shows nothing: it offers to read them where that was stopped.
  void need_history(bool needs = true) { needs_history_ = needs; }

  template <class Signal>
  void update_on(Signal signal) {
    connect(&workspace_, signal, this, [this] { content_changed(); });
  }
  // When a history, an analysis or the comparison came.
  void update_when_loaded();
  // When the second run's times are drawn at another place.
  void update_when_shifted();
  void content_changed();  // update_content() now, or when the panel comes into sight

  Workspace& workspace() const { return workspace_; }
  // The run that the panel tells of, by number; null where none is open.
  std::uint8_t run_number() const;
  const OpenRun* run() const;
  // How much later than its own times that run is drawn.
  Duration shift() const;
  // The panel tells of the run that this line chooses; it is hidden where one run is open.
  void add_run_choice(QHBoxLayout* line);

  // Computes on the worker, shows on the thread of the window. Of two works with one key only the later is shown.
  // Errors become the status. Urgent work is quick and quiet: no status says that it is under way.
  template <class Result>
  void run_in_background(const QString& what, const QString& key, std::function<Result(const LoadProgress&)> compute,
                std::function<void(Result)> show, bool urgent = false) {
    const std::uint64_t turn = begin_work(key, what, urgent);
    start_work(
        what, key, turn,
        [compute = std::move(compute), show = std::move(show)](const LoadProgress& progress) {
          auto result = std::make_shared<Result>(compute(progress));
          return std::function<void()>([result, show] { show(std::move(*result)); });
        },
        urgent);
  }
  // Work of this key that is under way is not shown.
  void discard_work(const QString& key);

  void set_status(const QString& text);
  bool waiting() const { return !waiting_.empty(); }  // the status says for what
  QVBoxLayout* body() const { return body_; }

  void showEvent(QShowEvent* event) override;
  void paintEvent(QPaintEvent* event) override;

 private:
  std::uint64_t begin_work(const QString& key, const QString& what, bool quiet);
  void start_work(const QString& what, const QString& key, std::uint64_t turn, Background::Work work, bool urgent);
  bool end_work(const QString& key, std::uint64_t turn);  // false: it was replaced
  void runs_changed();
  bool is_seen() const;
  void catch_up();
  void stopped();
  void offer_history();
  void offer_again();

  Workspace& workspace_;
  QVBoxLayout* body_ = nullptr;
  QLabel* status_ = nullptr;
  QComboBox* run_choice_ = nullptr;
  std::map<QString, std::uint64_t> turns_, waiting_;
  std::uint64_t turn_ = 0;
  std::vector<const void*> loaded_;
  Duration shift_{};
  bool stale_ = true, needs_history_ = false;
};

// A small button with words, reached by Tab.
QToolButton* add_button(QHBoxLayout* line, const QString& text, const QString& meaning, std::function<void()> clicked);

}  // namespace memwall::gui
