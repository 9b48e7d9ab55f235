// A hash of text that is the same in every run and on every machine: 64-bit FNV-1a (Fowler, Noll, Vo). Keys of ops that
// are compared between traces are made of it, since numbers of strings differ from trace to trace.
#pragma once

#include <cstdint>
#include <string_view>

namespace memwall {

// One more value into a hash: FNV-1a's step, over up to eight bytes at a time.
constexpr std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) { return (hash ^ value) * 0x100000001b3ULL; }

constexpr std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = mixed(hash, static_cast<unsigned char>(c));
  return hash;
}

}  // namespace memwall
