// A bar with the time that is left, on a terminal, for what takes over a second.
// Written to stderr and wiped when done; where stderr is no terminal, nothing is written.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "sim/engine/observer.h"
#include "study/watch.h"

namespace memwall {

class ProgressBar {
 public:
  explicit ProgressBar(std::string label);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  // Share done, 0 to 1. Cheap: draws ten times a second at most, and never in the first second.
  void update(double share);

 private:
  using Clock = std::chrono::steady_clock;
  std::string label_;
  Clock::time_point start_ = Clock::now(), drawn_ = start_;
  bool terminal_;
  bool visible_ = false;
};

// "  simulating [=====>    ] 52 %  3 s left"
std::string progress_line(const std::string& label, double share, double elapsed_seconds);

// Watches a simulation.
class SimulationProgress : public Observer {
 public:
  void on_progress(Time, double share) override { bar_.update(share); }

 private:
  ProgressBar bar_{"simulating"};
};

// Watches how far this process has read a file, from outside its reader (Linux: the position in
// /proc/self/fdinfo; elsewhere no bar). Lives as long as the reading.
class ReadingProgress {
 public:
  explicit ReadingProgress(const std::filesystem::path& file);

 private:
  std::jthread watcher_;
};

// Shows how far a study is: of files that are read, and of its searches.
class TerminalWatch : public Watch {
 public:
  explicit TerminalWatch(const char* search = "searching") : search_(search) {}
  std::shared_ptr<void> reading(const std::filesystem::path& file) override {
    return std::make_shared<ReadingProgress>(file);
  }
  void searched(double share) override {
    const std::lock_guard lock(mutex_);
    if (!bar_) bar_.emplace(search_);
    bar_->update(share);
  }

 private:
  const char* search_;
  std::mutex mutex_;
  std::optional<ProgressBar> bar_;  // from the first news on
};

}  // namespace memwall
