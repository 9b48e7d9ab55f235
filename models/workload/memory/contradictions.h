// What is wrong with a recording, in sentences: the first few word by word, the rest counted, so that a file that is
// nothing but nonsense neither fills the memory nor the screen.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace memwall {

class Contradictions {
 public:
  static constexpr std::size_t kWritten = 20;

  // "event 17: ..."
  template <typename... Values>
  void at_event(std::size_t event, fmt::format_string<Values...> text, Values&&... values) {
    if (++count_ <= kWritten)
      sentences_.push_back(fmt::format("event {}: ", event) + fmt::format(text, std::forward<Values>(values)...));
  }
  template <typename... Values>
  void add(fmt::format_string<Values...> text, Values&&... values) {
    if (++count_ <= kWritten) sentences_.push_back(fmt::format(text, std::forward<Values>(values)...));
  }
  bool none() const { return count_ == 0; }

  std::vector<std::string> sentences() const {
    std::vector<std::string> all = sentences_;
    if (count_ > kWritten) all.push_back(fmt::format("... and {} more contradictions", count_ - kWritten));
    return all;
  }

 private:
  std::vector<std::string> sentences_;
  std::size_t count_ = 0;
};

}  // namespace memwall
