// A program run on a terminal: its standard input, output and errors are one of a given width.
#pragma once

#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <filesystem>
#include <string>

#include "tests/support/command.h"

namespace memwall {

// `line` for a shell in the folder `where`; outcome.out has what the terminal shows, line ends as programs write them.
// Nothing is typed: a program that waits for it is killed after 20 s (code 137).
inline CommandOutcome run_on_terminal(const std::string& line, const std::filesystem::path& where, int columns) {
  ::winsize size{};
  size.ws_row = 40;
  size.ws_col = static_cast<unsigned short>(columns);
  int terminal = -1;
  const ::pid_t child = ::forkpty(&terminal, nullptr, nullptr, &size);
  if (child < 0) return {};
  if (child == 0) {
    const std::string whole = "cd '" + where.string() + "' && unset COLUMNS NO_COLOR; export TERM=xterm; " + line;
    ::execlp("timeout", "timeout", "-s", "KILL", "--foreground", "20", "sh", "-c", whole.c_str(), nullptr);
    ::_exit(127);
  }
  CommandOutcome outcome;
  std::array<char, 4096> piece{};
  for (;;) {
    const ::ssize_t got = ::read(terminal, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;  // EIO: nobody writes any more
    outcome.out.append(piece.data(), static_cast<std::size_t>(got));
  }
  ::close(terminal);
  std::string shown;
  for (const char c : outcome.out)
    if (c != '\r') shown += c;
  outcome.out = shown;
  int status = 0;
  ::waitpid(child, &status, 0);
  outcome.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return outcome;
}

}  // namespace memwall
