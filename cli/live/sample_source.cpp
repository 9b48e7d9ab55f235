#include "cli/live/sample_source.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "cli/live/nvml.h"
#include "sim/error.h"

namespace memwall {
namespace {

constexpr std::size_t kLongestLine = 1 << 16;

class SampleLog : public SampleSource {
 public:
  explicit SampleLog(const std::string& path) : name_(path == "-" ? "standard input" : path), reader_(name_) {
    if (path == "-" && ::isatty(STDIN_FILENO) == 1)
      throw InputError("standard input: this is a terminal, and nothing is piped into it; expected a log of samples.");
    if (path == "-") return;
    file_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat state {};
    if (file_ < 0 || ::fstat(file_, &state) != 0)
      throw InputError(fmt::format("{}: the log cannot be opened ({}).", path, std::strerror(errno)));
    if (S_ISDIR(state.st_mode)) throw InputError(fmt::format("{}: this is a folder; expected a log.", path));
    grows_ = S_ISREG(state.st_mode);
  }
  ~SampleLog() override {
    if (file_ > 0) ::close(file_);
  }
  SampleLog(const SampleLog&) = delete;
  SampleLog& operator=(const SampleLog&) = delete;

  std::optional<MemorySample> poll() override {
    for (;;) {
      const std::size_t end = text_.find('\n', searched_);
      if (end != std::string::npos) {
        const auto sample = take(end, end + 1);
        if (sample) return sample;
        continue;
      }
      searched_ = text_.size();
      if (text_.size() - used_ > kLongestLine)
        throw InputError(
            fmt::format("{}: a line is longer than {} bytes; expected a log of samples.", name_, kLongestLine));
      if (fill()) continue;
      // The last line of a pipe may lack its end; that of a growing file is not yet complete.
      if (ended_ && used_ < text_.size()) return take(text_.size(), text_.size());
      return std::nullopt;
    }
  }
  bool ended() const override { return ended_ && used_ == text_.size(); }
  bool paced_by_file() const override { return true; }
  std::string title() const override { return name_; }

 private:
  std::optional<MemorySample> take(std::size_t end, std::size_t next) {
    const std::string_view line = std::string_view(text_).substr(used_, end - used_);
    const auto sample = reader_.read(line);
    used_ = searched_ = next;
    return sample;
  }

  // More text; false if there is none now.
  bool fill() {
    if (ended_) return false;
    text_.erase(0, std::exchange(used_, 0));
    searched_ = text_.size();
    if (grows_) require_whole();
    std::array<char, 65536> block{};
    const ssize_t size = ::read(file_, block.data(), block.size());
    if (size < 0 && errno != EINTR)
      throw InputError(fmt::format("{}: the log cannot be read ({}).", name_, std::strerror(errno)));
    if (size > 0) {
      text_.append(block.data(), static_cast<std::size_t>(size));
      read_ += size;
    }
    ended_ = size == 0 && !grows_;
    return size > 0;
  }

  void require_whole() const {
    struct stat state {};
    if (::fstat(file_, &state) == 0 && state.st_size < read_)
      throw InputError(fmt::format("{}: the log became shorter while it was followed.", name_));
  }

  std::string name_;
  int file_ = 0;
  bool grows_ = false, ended_ = false;
  off_t read_ = 0;
  std::string text_;
  std::size_t used_ = 0, searched_ = 0;  // of text_
  MemorySampleReader reader_;
};

class Driver : public SampleSource {
 public:
  Driver(const std::string& library, unsigned index) : nvml_(library), index_(index) {
    name_ = nvml_.name(index);
    capacity_ = nvml_.memory(index).total;
  }
  std::optional<MemorySample> poll() override {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return MemorySample{std::chrono::duration<double>(now).count(), nvml_.memory(index_).used};
  }
  bool ended() const override { return false; }
  bool paced_by_file() const override { return false; }
  std::string title() const override { return fmt::format("GPU {} ({})", index_, name_); }
  Bytes capacity() const override { return capacity_; }

 private:
  Nvml nvml_;
  unsigned index_;
  std::string name_;
  Bytes capacity_ = 0;
};

}  // namespace

std::unique_ptr<SampleSource> open_sample_log(const std::string& path) { return std::make_unique<SampleLog>(path); }

std::unique_ptr<SampleSource> open_driver(const std::string& library, unsigned index) {
  return std::make_unique<Driver>(library, index);
}

}  // namespace memwall
