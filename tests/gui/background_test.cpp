// Does background work come back in order, on the right thread, once, and not at all when cancelled?
#include "gui/view/background.h"

#include <gtest/gtest.h>
#include <QCoreApplication>
#include <QSignalSpy>
#include <QThread>

#include <atomic>
#include <chrono>
#include <memory>
#include <new>
#include <thread>

#include "sim/error.h"

namespace memwall::gui {
namespace MEMWALL_TEST_FILE {

Background::Work append(std::vector<int>& done, int value) {
  return [&done, value](const LoadProgress&) { return [&done, value] { done.push_back(value); }; };
}

// Runs until it is cancelled.
Background::Work endless(std::atomic<bool>& began) {
  return [&began](const LoadProgress& progress) -> std::function<void()> {
    began = true;
    while (progress(0.5)) std::this_thread::yield();
    throw LoadCancelled{};
  };
}

void wait_until(const std::atomic<bool>& flag) {
  while (!flag) std::this_thread::yield();
}

TEST(Background, WorksInTurnAndHandsOverOnTheThreadOfTheWindow) {
  Background background;
  std::vector<int> done;
  QThread *worker = nullptr, *window = nullptr;
  background.start("a", append(done, 1));
  background.start("b", append(done, 2));
  background.start("c", [&](const LoadProgress&) {
    worker = QThread::currentThread();
    return [&] { window = QThread::currentThread(); };
  });
  EXPECT_FALSE(background.idle());
  EXPECT_TRUE(done.empty()) << "results come with the events of the window";
  background.wait();
  EXPECT_TRUE(background.idle());
  EXPECT_EQ(done, (std::vector<int>{1, 2}));
  EXPECT_EQ(window, QThread::currentThread());
  EXPECT_NE(worker, window);
}

TEST(Background, WaitCoversWhatResultsStart) {
  Background background;
  std::vector<int> done;
  background.start("a", [&](const LoadProgress&) { return [&] { background.start("b", append(done, 2)); }; });
  background.wait();
  EXPECT_EQ(done, std::vector<int>{2});
}

TEST(Background, NewWorkReplacesWorkOfItsKeyWhereverThatIs) {
  Background background;
  std::atomic<bool> began = false;
  std::vector<int> done;
  background.start("runs", endless(began), "key");
  wait_until(began);
  background.start("waits", append(done, 1), "key");
  background.start("other", append(done, 2), "another key");
  background.start("last", append(done, 3), "key");
  background.wait();  // would not return if what runs were not cancelled
  EXPECT_EQ(done, (std::vector<int>{2, 3}));
}

TEST(Background, AResultThatWasReplacedBeforeItWasHandedOverIsDropped) {
  Background background;
  std::vector<int> done;
  std::atomic<bool> began = false, through = false;
  background.start("first", append(done, 1), "key");
  background.start("marker", [&](const LoadProgress&) -> std::function<void()> {
    through = true;
    return {};
  });
  wait_until(through);  // the first is done, its result waits for the events of this thread
  background.start("second", append(done, 2), "key");
  background.wait();
  EXPECT_EQ(done, std::vector<int>{2});
}

TEST(Background, UrgentWorkDoesNotWaitForLongWork) {
  Background background;
  std::atomic<bool> began = false;
  std::vector<int> done;
  background.start("long", endless(began));
  wait_until(began);
  background.start("urgent", append(done, 1), {}, true);
  while (done.empty()) QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
  EXPECT_FALSE(background.idle());
  background.cancel();
  background.wait();
}

TEST(Background, TellsOfErrorsAndGoesOn) {
  Background background;
  const QSignalSpy failed(&background, &Background::failed), finished(&background, &Background::finished);
  std::vector<int> done;
  background.start("Reading x",
                   [](const LoadProgress&) -> std::function<void()> { throw InputError("x is damaged."); });
  background.start("b", append(done, 1));
  background.wait();
  ASSERT_EQ(failed.size(), 1);
  EXPECT_EQ(failed[0][0].toString(), "Reading x");
  EXPECT_EQ(failed[0][1].toString(), "x is damaged.");
  EXPECT_EQ(done, std::vector<int>{1});
  EXPECT_EQ(finished.size(), 1);
}

TEST(Background, CancelledWorkFailsInSilence) {
  Background background;
  const QSignalSpy failed(&background, &Background::failed);
  std::atomic<bool> began = false;
  std::vector<int> done;
  background.start("a", endless(began));
  background.start("b", append(done, 1));
  wait_until(began);
  background.cancel();
  background.wait();
  EXPECT_TRUE(failed.isEmpty());
  EXPECT_EQ(done, std::vector<int>{1}) << "cancel() is for what runs";
  background.start("c", append(done, 2));
  background.cancel_all();
  background.wait();
  EXPECT_EQ(done, std::vector<int>{1});
}

TEST(Background, ProgressIsToldAtMostTwentyTimesASecond) {
  Background background;
  const QSignalSpy progressed(&background, &Background::progressed), started(&background, &Background::started);
  background.start("Counting", [](const LoadProgress& progress) -> std::function<void()> {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(330);
    while (std::chrono::steady_clock::now() < until) progress(0.25);
    return {};
  });
  background.wait();
  ASSERT_EQ(started.size(), 1);
  EXPECT_EQ(started[0][0].toString(), "Counting");
  EXPECT_LE(progressed.size(), 6);
  ASSERT_GE(progressed.size(), 1);
  EXPECT_EQ(progressed[0][0].toDouble(), 0.25);
}

// Of the blocks of several pictures those of the latest are wanted first.
TEST(Background, OfUrgentWorkTheLatestGoesFirstAndIsNotToldOf) {
  Background background;
  const QSignalSpy started(&background, &Background::started), progressed(&background, &Background::progressed);
  std::atomic<bool> began = false, go_on = false;
  std::vector<int> done;
  background.start(
      "runs",
      [&](const LoadProgress& progress) -> std::function<void()> {
        began = true;
        const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(60);
        while (!go_on || std::chrono::steady_clock::now() < until) progress(0.5);
        return {};
      },
      {}, true);
  wait_until(began);
  background.start("earlier", append(done, 1), "a", true);
  background.start("latest", append(done, 2), "b", true);
  go_on = true;
  background.wait();
  EXPECT_EQ(done, (std::vector<int>{2, 1}));
  EXPECT_TRUE(started.isEmpty());
  EXPECT_TRUE(progressed.isEmpty());
}

TEST(Background, WantOfMemoryIsToldToo) {
  Background background;
  const QSignalSpy failed(&background, &Background::failed);
  background.start("a", [](const LoadProgress&) -> std::function<void()> { throw std::bad_alloc(); });
  background.wait();
  ASSERT_EQ(failed.size(), 1);
  EXPECT_TRUE(failed[0][1].toString().contains("memory"));
}

// What work holds (a whole run) may take long to release: not while the window waits.
TEST(Background, WhatWorkHeldIsReleasedByTheWorker) {
  Background background;
  QThread* releaser = nullptr;
  std::shared_ptr<int> held(new int, [&releaser](int* value) {
    releaser = QThread::currentThread();
    delete value;
  });
  background.start("a", [held = std::move(held)](const LoadProgress&) -> std::function<void()> { return {}; });
  background.wait();
  EXPECT_NE(releaser, nullptr);
  EXPECT_NE(releaser, QThread::currentThread());
}

TEST(Background, ItsEndCancelsAndHandsNothingOver) {
  std::vector<int> done;
  std::atomic<bool> began = false;
  {
    Background background;
    background.start("first", append(done, 1));
    background.start("a", endless(began));
    wait_until(began);
    background.start("b", append(done, 2));
  }
  QCoreApplication::processEvents();
  EXPECT_TRUE(done.empty());
}

}  // namespace MEMWALL_TEST_FILE
}  // namespace memwall::gui
