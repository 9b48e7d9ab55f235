#include "gui/view/background.h"

#include <QCoreApplication>
#include <QEvent>
#include <QPointer>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <thread>

#include "sim/error.h"

namespace memwall::gui {

struct Background::Job {
  QString what;
  Work work;
  QString key;
  bool urgent = false;
  std::atomic<bool> cancelled = false;
  std::function<void()> result;  // set by the worker before it hands over
  QString error;                 // likewise; what() of an exception
};

// The threads outlive no Background: its destructor joins them.
struct Background::Queue {
  enum Worker : std::size_t { normal, urgent, workers };

  explicit Queue(Background* its_owner) : owner(its_owner) {}
  void work(Worker worker);
  void perform(const std::shared_ptr<Job>& job) const;

  Background* owner;
  mutable std::mutex mutex;
  std::condition_variable changed;
  std::array<std::deque<std::shared_ptr<Job>>, workers> waiting;
  std::array<std::shared_ptr<Job>, workers> running;
  std::list<std::shared_ptr<Job>> open;  // waiting, running, or not yet handed over
  std::size_t performed = 0;             // jobs that workers are through with
  bool ending = false;
  std::array<std::thread, workers> threads;
};

namespace {

// Passes progress on at most twenty times a second.
class Throttle {
 public:
  bool passes() {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::milliseconds(50)) return false;
    last_ = now;
    return true;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace

void Background::Queue::work(Worker worker) {
  std::unique_lock lock(mutex);
  while (true) {
    changed.wait(lock, [&] { return ending || !waiting[worker].empty(); });
    if (ending) return;
    const std::shared_ptr<Job> job = waiting[worker].front();
    waiting[worker].pop_front();
    running[worker] = job;
    lock.unlock();
    if (!job->cancelled) perform(job);
    job->work = nullptr;  // what it holds is released here, not on the window's thread
    // Without an owner's thread that still takes events, the posted call is dropped with the owner.
    QMetaObject::invokeMethod(
        owner, [target = owner, job] { target->hand_over(job); }, Qt::QueuedConnection);
    lock.lock();
    running[worker] = nullptr;
    ++performed;
    changed.notify_all();
  }
}

void Background::Queue::perform(const std::shared_ptr<Job>& job) const {
  const auto tell = [this, &job](auto signal) {
    if (!job->urgent) QMetaObject::invokeMethod(owner, std::move(signal), Qt::QueuedConnection);
  };
  tell([target = owner, what = job->what] { Q_EMIT target->started(what); });
  Throttle throttle;
  const LoadProgress progress = [&](double done) {
    if (job->cancelled) return false;
    if (throttle.passes()) tell([target = owner, done] { Q_EMIT target->progressed(done); });
    return true;
  };
  try {
    job->result = job->work(progress);
  } catch (const LoadCancelled&) {
    job->cancelled = true;
  } catch (const std::bad_alloc&) {
    job->error = QStringLiteral("There is not enough memory for this.");
  } catch (const std::exception& error) {
    job->error = QString::fromUtf8(error.what());
    if (job->error.isEmpty()) job->error = QStringLiteral("It failed without saying why.");
  }
}

Background::Background(QObject* parent) : QObject(parent), queue_(std::make_unique<Queue>(this)) {
  for (const auto worker : {Queue::normal, Queue::urgent}) {
    queue_->threads[worker] = std::thread([queue = queue_.get(), worker] { queue->work(worker); });
  }
}

Background::~Background() {
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->ending = true;
    for (const auto& job : queue_->open) job->cancelled = true;
    queue_->changed.notify_all();
  }
  for (std::thread& thread : queue_->threads) thread.join();
}

void Background::start(const QString& what, Work work, const QString& key, bool urgent) {
  const auto job = std::make_shared<Job>();
  job->what = what;
  job->work = std::move(work);
  job->key = key;
  job->urgent = urgent;
  cancel(key);
  const std::lock_guard lock(queue_->mutex);
  queue_->open.push_back(job);
  if (urgent) {
    queue_->waiting[Queue::urgent].push_front(job);
  } else {
    queue_->waiting[Queue::normal].push_back(job);
  }
  queue_->changed.notify_all();
}

void Background::cancel() {
  const std::lock_guard lock(queue_->mutex);
  if (const auto& job = queue_->running[Queue::normal]) job->cancelled = true;
}

void Background::cancel(const QString& key) {
  if (key.isEmpty()) return;
  const std::lock_guard lock(queue_->mutex);
  for (const auto& job : queue_->open) {
    if (job->key == key) job->cancelled = true;
  }
}

void Background::cancel_all() {
  const std::lock_guard lock(queue_->mutex);
  for (const auto& job : queue_->open) job->cancelled = true;
}

bool Background::idle() const {
  const std::lock_guard lock(queue_->mutex);
  return queue_->open.empty();
}

void Background::hand_over(const std::shared_ptr<Job>& job) {
  bool last = false;
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->open.remove(job);
    last = queue_->open.empty();
  }
  const QPointer<Background> alive(this);  // a result may close the window
  if (!job->cancelled) {
    if (!job->error.isEmpty()) {
      Q_EMIT failed(job->what, job->error);
    } else if (job->result) {
      job->result();
    }
  }
  job->result = nullptr;
  if (alive && last && idle()) Q_EMIT finished();
}

void Background::wait() {
  while (true) {
    std::size_t performed = 0;
    {
      const std::lock_guard lock(queue_->mutex);
      performed = queue_->performed;
    }
    QCoreApplication::sendPostedEvents(this, QEvent::MetaCall);
    std::unique_lock lock(queue_->mutex);
    if (queue_->open.empty()) return;
    queue_->changed.wait(lock, [&] { return queue_->performed != performed; });
  }
}

}  // namespace memwall::gui
