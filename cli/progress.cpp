#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <optional>

namespace memwall {
namespace {

namespace fs = std::filesystem;
constexpr std::chrono::milliseconds kQuiet{1000}, kBetweenDraws{100};

// The position of this process in `file`, if it has it open.
std::optional<std::uintmax_t> position_in(const fs::path& file) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd", error)) {
    std::error_code gone;  // a descriptor may close while it is looked at
    if (fs::read_symlink(entry.path(), gone) != file || gone) continue;
    std::ifstream info("/proc/self/fdinfo/" + entry.path().filename().string());
    std::string word;
    std::uintmax_t position = 0;
    while (info >> word)
      if (word == "pos:" && info >> position) return position;
  }
  return std::nullopt;
}

void watch(const std::stop_token& stop, const fs::path& file, std::uintmax_t size) {
  ProgressBar bar("reading");
  while (!stop.stop_requested()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (const auto position = position_in(file)) bar.update(static_cast<double>(*position) / static_cast<double>(size));
  }
}

}  // namespace

std::string progress_line(const std::string& label, double share, double elapsed_seconds) {
  constexpr int kWidth = 30;
  const double done = std::clamp(share, 0.0, 1.0);
  const int filled = static_cast<int>(done * kWidth);
  const std::string bar = std::string(static_cast<std::size_t>(filled), '=') + (filled < kWidth ? ">" : "") +
                          std::string(static_cast<std::size_t>(std::max(0, kWidth - filled - 1)), ' ');
  const std::string left = done > 0.01 ? fmt::format("{:.0f} s left", elapsed_seconds * (1 - done) / done) : "";
  return fmt::format("  {} [{}] {:.0f} %  {}", label, bar, done * 100, left);
}

ProgressBar::ProgressBar(std::string label) : label_(std::move(label)), terminal_(::isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
  if (visible_) std::fputs("\r\033[K", stderr);
}

void ProgressBar::update(double share) {
  if (!terminal_) return;
  const Clock::time_point now = Clock::now();
  if (now - start_ < kQuiet || now - drawn_ < kBetweenDraws) return;
  drawn_ = now;
  visible_ = true;
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  std::fputs(("\r" + progress_line(label_, share, elapsed) + "\033[K").c_str(), stderr);
  std::fflush(stderr);
}

ReadingProgress::ReadingProgress(const fs::path& file) {
  std::error_code error;
  const fs::path whole = fs::canonical(file, error);
  const std::uintmax_t size = error ? 0 : fs::file_size(whole, error);
  constexpr std::uintmax_t kQuick = 16 << 20;  // read well within a second
  if (error || size < kQuick || ::isatty(STDERR_FILENO) != 1) return;
  watcher_ = std::jthread([whole, size](const std::stop_token& stop) { watch(stop, whole, size); });
}

}  // namespace memwall
