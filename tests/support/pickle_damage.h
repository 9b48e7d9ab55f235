// Damage to a pickle that its opcodes survive: what only an author who knows the format would do. For fuzz tests.
#pragma once

#include <random>
#include <string>
#include <vector>

namespace memwall {

// The opcodes of a pickle with their arguments, one each; frames are left out. Stops where the format ends.
std::vector<std::string> pickle_opcodes(const std::string& pickle);

// One to four changes: an opcode removed, doubled, moved, replaced; a number, reference or length made extreme; a
// stretch from `other` put in.
std::string with_damaged_opcodes(const std::string& pickle, const std::string& other, std::mt19937_64& random);

}  // namespace memwall
