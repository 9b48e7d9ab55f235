// XXH64: a checksum that finds every damage that is not deliberate, at memory speed.
// Source: Yann Collet, "xxHash fast digest algorithm", doc/xxhash_spec.md of github.com/Cyan4973/xxHash.
#pragma once

#include <cstddef>
#include <cstdint>

namespace memwall {

// Of `size` bytes, seed 0.
std::uint64_t xxh64(const void* data, std::size_t size);

}  // namespace memwall
