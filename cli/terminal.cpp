#include "cli/terminal.h"

#include <cstdio>
#include <stdexcept>

#include "sim/presentable.h"

namespace memwall {

void print(const std::string& text) {
  const std::string shown = presentable(text);
  if (std::fwrite(shown.data(), 1, shown.size(), stdout) != shown.size() || std::fflush(stdout) != 0)
    throw std::runtime_error("standard output cannot be written to.");
}

void print_error(const std::string& text) { std::fputs(presentable(text).c_str(), stderr); }

}  // namespace memwall
