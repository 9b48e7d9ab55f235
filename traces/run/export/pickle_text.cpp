#include "traces/run/export/pickle_text.h"

#include <bit>
#include <limits>

namespace memwall {
namespace {

// Opcodes, by their names in pickletools.py.
constexpr char kShortText = '\x8c', kText = 'X', kMemoize = '\x94', kGet = 'h', kLongGet = 'j', kInteger1 = 'K',
               kInteger2 = 'M', kInteger4 = 'J', kLong = '\x8a', kReal = 'G', kTuple2 = '\x86';

constexpr std::size_t kBatch = 1000;  // as CPython's

}  // namespace

void PickleText::next_item() {
  if (items_.back() > 0 && items_.back() % kBatch == 0) bytes_ += "e(";
  ++items_.back();
}

void PickleText::little(std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
}

std::uint32_t PickleText::remember() {
  bytes_ += kMemoize;
  return remembered_++;
}

void PickleText::recall(std::uint32_t number) {
  const bool is_short = number < 256;
  bytes_ += is_short ? kGet : kLongGet;
  little(number, is_short ? 1 : 4);
}

void PickleText::text(std::string_view value) {
  const auto [known, is_new] = texts_.try_emplace(std::string(value), remembered_);
  if (!is_new) return recall(known->second);
  const bool is_short = value.size() < 256;
  bytes_ += is_short ? kShortText : kText;
  little(value.size(), is_short ? 1 : 4);
  bytes_ += value;
  remember();
}

void PickleText::integer(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  if (value >= 0 && value < 1 << 8) {
    bytes_ += kInteger1;
    little(bits, 1);
  } else if (value >= 0 && value < 1 << 16) {
    bytes_ += kInteger2;
    little(bits, 2);
  } else if (value >= std::numeric_limits<std::int32_t>::min() && value <= std::numeric_limits<std::int32_t>::max()) {
    bytes_ += kInteger4;
    little(bits, 4);
  } else {
    bytes_ += kLong;
    bytes_ += '\x08';
    little(bits, 8);
  }
}

// Big-endian, unlike everything else.
void PickleText::real(double value) {
  bytes_ += kReal;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  for (int i = 7; i >= 0; --i) bytes_ += static_cast<char>(bits >> (8 * i) & 0xff);
}

void PickleText::pair(std::int64_t first, std::int64_t second) {
  integer(first);
  integer(second);
  bytes_ += kTuple2;
}

}  // namespace memwall
