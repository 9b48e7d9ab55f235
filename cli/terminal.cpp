#include "cli/terminal.h"

#include <cstdio>
#include <stdexcept>
#include <string_view>

#include "cli/print/style.h"
#include "sim/files/input_file.h"
#include "sim/presentable.h"

namespace memwall {
namespace {

// Does a path end here, in a sentence?
bool ends_path(std::string_view rest) {
  constexpr std::string_view kBehindNames = " \n:;,'\")`";
  if (rest.starts_with('.')) rest.remove_prefix(1);
  return rest.empty() || kBehindNames.find(rest.front()) != std::string_view::npos;
}

}  // namespace

void print(const std::string& text) {
  const std::string shown = presentable_styled(text, STDOUT_FILENO);
  if (std::fwrite(shown.data(), 1, shown.size(), stdout) != shown.size() || std::fflush(stdout) != 0)
    throw std::runtime_error("standard output cannot be written to.");
}

void print_error(const std::string& text) {
  const std::string shown = presentable_styled(with_standard_input_named(text), STDERR_FILENO);
  std::fputs(with_alarms(shown, STDERR_FILENO).c_str(), stderr);
}

void print_failure(const std::string& who, const std::string& sentence) {
  const std::string shown = styled(presentable_line(who) + ":", Style::alarm, STDERR_FILENO) + " " +
                            with_alarms(presentable_line(with_standard_input_named(sentence)), STDERR_FILENO) + "\n";
  std::fputs(shown.c_str(), stderr);
}

std::string with_standard_input_named(std::string text) {
  constexpr std::string_view kPath = kStandardInput, kName = "standard input";
  for (std::size_t at = 0; (at = text.find(kPath, at)) != std::string::npos;) {
    const bool whole = ends_path(std::string_view(text).substr(at + kPath.size()));
    if (whole) text.replace(at, kPath.size(), kName);
    at += whole ? kName.size() : kPath.size();
  }
  return text;
}

}  // namespace memwall
