// A program run to its end by the shell, and what it said.
#pragma once

#include <sys/wait.h>

#include <cstdlib>
#include <string>

#include "tests/support/scratch_folder.h"

namespace memwall {

struct CommandOutcome {
  int code = -1;
  std::string out, err;
};

// For a shell, before a line whose program must not take much memory. Under sanitizers nothing: their shadow takes
// terabytes of addresses.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr const char* kLimitMemory = "";
#else
inline constexpr const char* kLimitMemory = "ulimit -v 8000000; ";
#endif

// `line` in the folder `where`; nothing is left there.
inline CommandOutcome run_command(const std::string& line, const std::filesystem::path& where) {
  const ScratchFolder streams;
  const std::string out = (streams / "out").string(), err = (streams / "err").string();
  const std::string whole = "cd '" + where.string() + "' && ( " + line + " ) >'" + out + "' 2>'" + err + "' </dev/null";
  const int status = std::system(whole.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128, content_of(out), content_of(err)};
}

}  // namespace memwall
