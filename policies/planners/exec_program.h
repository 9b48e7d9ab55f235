// A program of the user's, run once: a document on its standard input, its standard output within limits.
//
// It runs in a process group of its own, without a shell, with the environment of this program, and ends with it. Its
// input is a file without a name, so nobody waits for it to read, or writes to it after its end. Whatever happens,
// nothing of the group is left behind, and no zombie.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

#include "sim/units.h"

namespace memwall {

struct ExecLimits {
  std::chrono::duration<double> time{60};
  Bytes memory = Bytes{4} << 30;                // addresses, of each of its processes
  std::size_t output = std::size_t{256} << 20;  // bytes
};

// What it printed. `program`: a path, or a name that PATH has. Throws UsageError, with the end of what it wrote to
// standard error, where it cannot be started, ends otherwise than with exit code 0, takes longer, or prints more.
std::string output_of_program(const std::string& program, std::string_view input, const ExecLimits& limits);

}  // namespace memwall
