// Work that takes longer than a frame: off the thread of the window, with progress, and cancelled
// when asked.
//
// One piece after the other on a thread of its own; urgent work (what a frame waits for) has a second
// thread, so that a file that takes long to read does not keep the picture from getting sharp.
#pragma once

#include <QObject>
#include <QString>

#include <functional>
#include <memory>

#include "traces/run/run_source.h"

namespace memwall::gui {

class Background : public QObject {
  Q_OBJECT
 public:
  // Runs on a worker; what it returns (nothing is allowed) runs on the thread of the window, unless the work was
  // cancelled or replaced until then. May throw InputError, UsageError (told by failed()), LoadCancelled (nothing
  // happens).
  using Work = std::function<std::function<void()>(const LoadProgress&)>;

  explicit Background(QObject* parent = nullptr);
  ~Background() override;  // cancels what runs and waits for it; nothing is handed over any more

  // `what`: "Reading run.h5". A `key` that is not empty replaces waiting work of the same key, and cancels it where it
  // runs: of ten statistics of a moving selection only the last is worked out. `urgent` runs at once, beside other
  // work; of several the latest goes first.
  void start(const QString& what, Work work, const QString& key = {}, bool urgent = false);
  void cancel();                    // what runs now and is not urgent
  void cancel(const QString& key);  // what runs or waits under a key
  void cancel_all();
  bool idle() const;
  // Returns when nothing runs or waits and all results have been handed over: for tests and headless use.
  void wait();

 Q_SIGNALS:
  // Of work that is not urgent: urgent work is too short to tell of.
  void started(const QString& what);
  void progressed(double done);  // at most twenty times a second
  void finished();               // nothing runs or waits any more
  void failed(const QString& what, const QString& sentence);

 private:
  struct Job;
  struct Queue;
  void hand_over(const std::shared_ptr<Job>& job);
  std::unique_ptr<Queue> queue_;
};

}  // namespace memwall::gui
