// Runs memwall itself, as a shell would, in a folder of its own.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "tests/support/scratch_folder.h"

namespace memwall {

struct ProgramOutcome {
  int code = -1;
  std::string out, err;
};

// `environment`: "NAME=value" words put before the program.
inline ProgramOutcome run_memwall(const ScratchFolder& folder, const std::string& arguments,
                                  const std::string& environment = "") {
  const std::string line = "cd '" + folder.path().string() + "' && " + environment + " '" MEMWALL_PROGRAM "' " +
                           arguments + " >.out 2>.err </dev/null";
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128, content_of(folder / ".out"), content_of(folder / ".err")};
}

}  // namespace memwall
