// Work that takes longer than a frame: one piece after the other on a thread of its own, with
// progress, and cancelled when asked.
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
  // Runs on the worker; what it returns runs on the thread of the window. May throw InputError, UsageError (shown as
  // a message), LoadCancelled (nothing happens).
  using Work = std::function<std::function<void()>(const LoadProgress&)>;

  explicit Background(QObject* parent = nullptr);
  ~Background() override;  // cancels what runs and waits for it

  // `what`: "Reading run.h5". A `key` that is not empty replaces waiting work of the same key, and cancels it where it
  // runs: of ten statistics of a moving selection only the last is worked out. `urgent` goes before what waits.
  void start(const QString& what, Work work, const QString& key = {}, bool urgent = false);
  void cancel();  // what runs now
  void cancel_all();
  bool idle() const;
  // Returns when nothing runs or waits and all results have been handed over: for tests and headless use.
  void wait();

 Q_SIGNALS:
  void started(const QString& what);
  void progressed(double done);  // at most twenty times a second
  void finished();               // nothing waits any more
  void failed(const QString& what, const QString& sentence);

 private:
  struct Queue;
  std::unique_ptr<Queue> queue_;
};

}  // namespace memwall::gui
