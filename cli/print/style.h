// How the terminal shows text: how wide it is, and bold and red where it has colors.
//
// The terminal is the process's, as stdout itself is: this is the one place that asks.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace memwall {

// Columns for which output is laid out where stdout is no terminal and COLUMNS is not set.
inline constexpr std::size_t kTerminal = 120;
inline constexpr std::size_t kNarrowestTerminal = 60;
// Columns for which output is laid out: COLUMNS, else those of the terminal, and no fewer than kNarrowestTerminal.
std::size_t terminal_width();

enum class ColorChoice : std::uint8_t { automatic, always, never };
// Of --color. Throws UsageError with the nearest valid name.
ColorChoice parse_color_choice(const std::string& name);
// For the rest of the program; automatic before that.
void choose_colors(ColorChoice choice);
// `automatic`: where `file` is a terminal, unless NO_COLOR is set and not empty or TERM is dumb.
bool shows_colors(int file);

enum class Style : std::uint8_t { heading, alarm };
// `text`, made presentable, in bold or red; as it is where `file` has no colors.
std::string styled(const std::string& text, Style style, int file = STDOUT_FILENO);
// `text` with what a reader must not overlook ("does not fit") in red; as it is where `file` has no colors.
std::string with_alarms(std::string text, int file = STDOUT_FILENO);

// presentable(text), but for what styled() and with_alarms() wrote for stdout, which `file` gets only if it has colors.
std::string presentable_styled(std::string_view text, int file);

}  // namespace memwall
