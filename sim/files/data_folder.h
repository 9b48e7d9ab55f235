// Where the files stand that memwall comes with: machines, workloads, samples, measurements.
#pragma once

#include <filesystem>

namespace memwall {

// The first of these:
//   the folder that the environment's `variable` names (null: none), whether there is one or not;
//   share/memwall/NAME of the installation that the running program belongs to, found from the program's own place, so
//   that an installation may be moved as a whole; of a library that a program loaded (the Python package), share/NAME
//   beside it;
//   `source`, the folder of the source tree that the program was built from.
std::filesystem::path data_folder(const char* variable, const char* name, const char* source);

}  // namespace memwall
