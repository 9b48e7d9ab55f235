// Run files that were made to do harm: bytes changed anywhere in the HDF5 part, its own checksums and ours made right
// again, so that only what the bytes mean can be wrong.
#pragma once

#include <random>
#include <string>

namespace memwall {

// A changed copy. Half of the changes hit HDF5's structures (headers of objects, indices of chunks, the superblock),
// the others any byte.
std::string mutated_run_file(const std::string& bytes, std::mt19937_64& random);

}  // namespace memwall
