#include "cli/print/style.h"

#include <fmt/format.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <utility>

#include "sim/error.h"
#include "sim/presentable.h"

namespace memwall {
namespace {

using std::string_view;

constexpr string_view kBold = "\x1b[1m", kRed = "\x1b[31m", kPlain = "\x1b[0m";

// What --color said.
ColorChoice& chosen_colors() {
  static ColorChoice choice = ColorChoice::automatic;
  return choice;
}

string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::size_t terminal_width() {
  constexpr std::size_t kWidest = 10'000;
  const string_view told = variable("COLUMNS");
  const char* const end = told.data() + told.size();
  std::size_t width = 0;
  const auto [stop, problem] = std::from_chars(told.data(), end, width);
  if (problem != std::errc{} || stop != end || width == 0) {
    struct ::winsize size {};
    width = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kTerminal;
  }
  return std::clamp(width, kNarrowestTerminal, kWidest);
}

ColorChoice parse_color_choice(const std::string& name) {
  constexpr std::array kChoices{std::pair{"auto", ColorChoice::automatic}, std::pair{"always", ColorChoice::always},
                                std::pair{"never", ColorChoice::never}};
  for (const auto& [known, choice] : kChoices)
    if (name == known) return choice;
  throw UsageError(fmt::format("--color \"{}\" is unknown; expected auto, always or never.{}", name,
                               did_you_mean(name, {"auto", "always", "never"})));
}

void choose_colors(ColorChoice choice) { chosen_colors() = choice; }

bool shows_colors(int file) {
  if (chosen_colors() != ColorChoice::automatic) return chosen_colors() == ColorChoice::always;
  return ::isatty(file) == 1 && variable("NO_COLOR").empty() && variable("TERM") != "dumb";
}

std::string styled(const std::string& text, Style style, int file) {
  if (!shows_colors(file)) return text;
  return fmt::format("{}{}{}", style == Style::heading ? kBold : kRed, presentable(text), kPlain);
}

std::string with_alarms(std::string text, int file) {
  constexpr string_view kAlarm = "does not fit";
  const std::string alarm = styled(std::string(kAlarm), Style::alarm, file);
  for (std::size_t at = 0; (at = text.find(kAlarm, at)) != std::string::npos; at += alarm.size())
    text.replace(at, kAlarm.size(), alarm);
  return text;
}

std::string presentable_styled(string_view text, int file) {
  if (!shows_colors(STDOUT_FILENO)) return presentable(text);  // nothing in it is ours
  const bool keep = shows_colors(file);
  std::string shown;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t at = text.size(), length = 0;
    for (const string_view style : {kBold, kRed, kPlain})
      if (const std::size_t found = text.find(style, begin); found < at) {
        at = found;
        length = style.size();
      }
    shown += presentable(text.substr(begin, at - begin));
    if (keep) shown += text.substr(at, length);
    begin = at + length;
  }
  return shown;
}

}  // namespace memwall
