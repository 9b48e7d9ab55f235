// SQLite databases made by hand. For tests of readers.
#pragma once

#include <string>

namespace memwall {

// The bytes of the database that these statements make.
std::string sqlite_file(const std::string& statements);

// An export of Nsight Systems as version 2023 writes it: one step of one process, with a forward pass under emit_nvtx,
// a backward pass on another thread, a copy, a memset, a synchronization and a cudaMalloc. `more` is executed behind
// it.
std::string nsys_report(const std::string& more = "");

}  // namespace memwall
