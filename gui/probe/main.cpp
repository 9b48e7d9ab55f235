// memwall-probe FILE [BYTES SECONDS]: opens a run file within limits of memory and time, for the viewer.
#include <cstdlib>

#include "gui/model/guarded_open.h"

int main(int argc, char** argv) {
  memwall::gui::ProbeLimits limits;
  if (argc != 2 && argc != 4) return 2;
  if (argc == 4) {
    limits.bytes = std::strtoull(argv[2], nullptr, 10);
    limits.seconds = std::strtod(argv[3], nullptr);
  }
  return memwall::gui::probe_main(argv[1], limits);
}
