#include "validate/replay/host_content.h"

#include <cstring>

#include "validate/replay/pattern.h"
#include "validate/replay/vector_clones.h"

namespace memwall {
namespace {

constexpr Bytes kWord = sizeof(std::uint64_t);

}  // namespace

// Not in the unnamed namespace: what is chosen at start needs a name.
MEMWALL_VECTOR_CLONES void fill_pattern_words(std::uint64_t* data, std::uint64_t words, std::uint64_t tag,
                                              std::uint64_t first_word) {
  for (std::uint64_t i = 0; i < words; ++i) data[i] = pattern_word(tag, first_word + i);
}

MEMWALL_VECTOR_CLONES std::uint64_t count_wrong_words(const std::uint64_t* data, std::uint64_t words,
                                                      std::uint64_t tag) {
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < words; ++i) wrong += data[i] != pattern_word(tag, i) ? 1 : 0;
  return wrong;
}

void fill_pattern(void* data, Bytes bytes, std::uint64_t tag, std::uint64_t first_word) {
  const auto words = static_cast<std::uint64_t>(bytes / kWord);
  fill_pattern_words(static_cast<std::uint64_t*>(data), words, tag, first_word);
  const std::uint64_t last = pattern_word(tag, first_word + words);
  std::memcpy(static_cast<std::byte*>(data) + words * kWord, &last, static_cast<std::size_t>(bytes % kWord));
}

PatternDifference compare_pattern(const void* data, Bytes bytes, std::uint64_t tag) {
  const auto words = static_cast<std::uint64_t>(bytes / kWord);
  const auto* content = static_cast<const std::uint64_t*>(data);
  PatternDifference difference{count_wrong_words(content, words, tag), 0};
  const std::uint64_t last = pattern_word(tag, words);
  const bool tail = std::memcmp(content + words, &last, static_cast<std::size_t>(bytes % kWord)) != 0;
  std::uint64_t first = words;
  if (difference.words > 0)
    for (first = 0; content[first] == pattern_word(tag, first);) ++first;
  difference.first = static_cast<Bytes>(first) * kWord;
  difference.words += tail ? 1 : 0;
  return difference;
}

void ContentCheck::reset() {
  const std::lock_guard lock(mutex_);
  count_ = {};
}

void ContentCheck::expect(OpId id, const char* role, const Buffer& buffer, Bytes bytes, std::uint64_t tag) {
  static constexpr const char* kPlaces[] = {"device", "pinned host", "pageable host", "file"};
  if (tag == 0 || buffer.place_class == PlaceClass::file) return;
  const PatternDifference difference = compare_pattern(buffer.data, bytes, tag);
  const std::lock_guard lock(mutex_);
  ++count_.checks;
  count_.bytes += static_cast<std::uint64_t>(bytes);
  if (difference.words == 0) return;
  ++count_.mismatches;
  if (!count_.first_mismatch.empty()) return;
  count_.first_mismatch = "op " + std::to_string(id) + " " + role + " " + std::to_string(bytes) + " bytes of " +
                          kPlaces[static_cast<int>(buffer.place_class)] + " memory of which " +
                          std::to_string(difference.words) + " words are not what they should be, the first at byte " +
                          std::to_string(difference.first) + ".";
}

void ContentCheck::expect_all(OpId id, std::span<const Operand> operands) {
  for (const Operand& operand : operands) expect(id, "reads", operand.buffer, operand.buffer.bytes, operand.expected);
}

void fill_all(std::span<const Operand> operands) {
  for (const Operand& operand : operands)
    if (operand.made != 0 && operand.buffer.place_class != PlaceClass::file)
      fill_pattern(operand.buffer.data, operand.buffer.bytes, operand.made);
}

}  // namespace memwall
