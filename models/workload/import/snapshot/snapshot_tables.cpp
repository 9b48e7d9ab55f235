#include "models/workload/import/snapshot/snapshot_tables.h"

#include <algorithm>
#include <cstring>
#include <random>

namespace memwall {
namespace {

std::uint64_t random_key() {
  std::random_device device;
  return static_cast<std::uint64_t>(device()) << 32 | device() | 1;
}

const std::uint64_t kKey = random_key(), kSecondKey = random_key();

// Both halves of the 128-bit product, folded: every bit of the factors reaches every bit of the result.
std::uint64_t folded_product(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t hash_of(const void* data, std::size_t size) {
  const char* bytes = static_cast<const char*>(data);
  std::uint64_t hash = kKey ^ size;
  for (; size > 0; size -= std::min<std::size_t>(size, 8)) {
    std::uint64_t word = 0;
    const std::size_t n = std::min<std::size_t>(size, 8);
    if (n == 8)
      std::memcpy(&word, bytes, 8);
    else
      std::memcpy(&word, bytes, n);
    hash = folded_product(hash ^ word, kSecondKey);
    bytes += n;
  }
  return folded_product(hash, kKey);
}

}  // namespace

void NumberIndex::grow() {
  std::vector<Slot> old(std::max<std::size_t>(64, 2 * slots_.size()));
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.number == kFree) continue;
    std::size_t at = slot.hash & mask();
    while (slots_[at].number != kFree) at = (at + 1) & mask();
    slots_[at] = slot;
  }
}

std::uint32_t TextTable::add(std::string_view text) {
  const auto next = static_cast<std::uint32_t>(size());
  const std::uint32_t number = index_.find_or_add(hash_of(text.data(), text.size()), next,
                                                  [&](std::uint32_t other) { return (*this)[other] == text; });
  if (number == next) {
    characters_ += text;
    ends_.push_back(characters_.size());
  }
  return number;
}

std::uint32_t FrameTable::add(const SourceFrame& frame) {
  const std::uint32_t words[3] = {frame.function, frame.file, static_cast<std::uint32_t>(frame.line)};
  const auto next = static_cast<std::uint32_t>(frames_.size());
  const std::uint32_t number = index_.find_or_add(hash_of(words, sizeof words), next,
                                                  [&](std::uint32_t other) { return frames_[other] == frame; });
  if (number == next) frames_.push_back(frame);
  return number;
}

StackId StackTable::add(std::span<const std::uint32_t> frames) {
  const auto next = static_cast<StackId>(stacks_.size());
  const StackId number = index_.find_or_add(hash_of(frames.data(), frames.size_bytes()), next,
                                            [&](StackId other) { return std::ranges::equal(stacks_[other], frames); });
  if (number == next) stacks_.emplace_back(frames.begin(), frames.end());
  return number;
}

}  // namespace memwall
