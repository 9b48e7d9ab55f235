// Work that Python waits for without its lock, and that Ctrl-C stops.
#pragma once

#include <pybind11/pybind11.h>
#include <unistd.h>

#include <chrono>

#include "sim/engine/observer.h"
#include "study/watch.h"

namespace memwall {

// Thrown where a signal's handler has raised: Python's error is set already.
struct Interrupted {};

// Asks now and then whether a signal has arrived. Python handles signals in its main thread alone. Others do not ask: a
// thread that takes Python's lock while the interpreter ends is ended by it, wherever it stands.
class SignalCheck {
 public:
  // Throws Interrupted. REQUIRES: the caller does not hold Python's lock.
  void ask() {
    if (getpid() != gettid()) return;
    const auto now = Clock::now();
    if (now - asked_ < std::chrono::milliseconds(20)) return;
    asked_ = now;
    const pybind11::gil_scoped_acquire lock;
    if (PyErr_CheckSignals() != 0) throw Interrupted();
  }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point asked_ = Clock::now();
};

// Of one simulation.
class InterruptibleRun : public Observer {
 public:
  void on_progress(Time, double) override { check_.ask(); }

 private:
  SignalCheck check_;
};

// Of a search, which several threads may report.
class InterruptibleSearch : public Watch {
 public:
  void searched(double) override {
    thread_local SignalCheck check;
    check.ask();
  }
};

}  // namespace memwall
