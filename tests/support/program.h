// Runs memwall itself, as a shell would, in a folder of its own.
#pragma once

#include <string>

#include "tests/support/command.h"

namespace memwall {

// `environment`: "NAME=value" words put before the program.
inline CommandOutcome run_memwall(const ScratchFolder& folder, const std::string& arguments,
                                  const std::string& environment = "") {
  return run_command(environment + " '" MEMWALL_PROGRAM "' " + arguments, folder.path());
}

}  // namespace memwall
