// Mutated copies of a file of any format, for fuzz tests: what a cut transfer, another version or a hostile author
// makes of it.
#pragma once

#include <cstdint>
#include <random>
#include <string>

namespace memwall {

// One to three changes. Text: cut, a member renamed, dropped or doubled, a value replaced by another type or an
// extreme number (negative, huge, NaN), lines dropped and swapped, bytes flipped. Binary: bytes and words flipped or
// made extreme, stretches moved, zeroed, doubled or left out, cut.
std::string mutated(std::string content, std::mt19937_64& random);

// The first `most` bytes of a text, ended so that it can be read: a JSON document behind its last whole element, with
// what is open closed, other text at a line's end. Binary content is left as it is.
std::string shortened_text(const std::string& content, std::size_t most);

// Is most of its beginning text?
bool is_text(const std::string& content);

}  // namespace memwall
