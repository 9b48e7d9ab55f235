#include "tests/support/run_file_editor.h"

#include <xxhash.h>

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "traces/run/file/user_block.h"

namespace memwall {

void reseal(std::string& bytes) {
  std::uint64_t piece = 0;
  const std::uint64_t length = bytes.size() - kUserBlockBytes;
  std::memcpy(&piece, bytes.data() + 32, 8);
  for (std::uint64_t at = 0, i = 0; at < length; at += piece, ++i) {
    const std::uint64_t sum =
        XXH64(bytes.data() + kUserBlockBytes + at, static_cast<std::size_t>(std::min(piece, length - at)), 0);
    std::memcpy(bytes.data() + 56 + 8 * i, &sum, 8);
  }
  std::memset(bytes.data() + 48, 0, 8);
  const std::uint64_t own = XXH64(bytes.data(), kUserBlockBytes, 0);
  std::memcpy(bytes.data() + 48, &own, 8);
}

}  // namespace memwall
